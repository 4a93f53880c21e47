import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase, SqlRow, SqlStatement } from '../../base/sqlite.js'
import { addTurnId, type Segment, type TurnIds } from '../../core/index.js'
import type { Chains } from './chains.js'
import { decodeSegment } from './segment-row.js'
import { decodeSession, type SessionRecord } from './session-row.js'

/** A session as it was read, or the reason why it must not be used. Only whoever asked for that session suffers. */
export type LoadedSession = { readonly record: SessionRecord } | { readonly damage: string }

export interface SessionPage {
  readonly records: readonly SessionRecord[]
  readonly damages: readonly string[]
  readonly next?: PageCursor
}

/** Where a listing goes on; `newest` keeps it from running after sessions that become busy meanwhile. */
export interface PageCursor {
  readonly since: number
  readonly id: number
  readonly newest: number
}

const PAGE_SESSIONS = 500

/** Reads sessions back: their row, their segments, and the turn ids of what is not committed. */
export class SessionReader {
  readonly #chains: Chains
  readonly #find: SqlStatement
  readonly #numbered: SqlStatement
  readonly #segments: SqlStatement
  readonly #unfinished: SqlStatement
  readonly #all: SqlStatement
  readonly #newest: SqlStatement

  constructor(db: SqlDatabase, chains: Chains) {
    this.#chains = chains
    this.#find = db.prepare('SELECT * FROM sessions WHERE session_id = ?')
    this.#numbered = db.prepare('SELECT * FROM sessions WHERE id = ?')
    this.#segments = db.prepare('SELECT * FROM segments WHERE session = ? ORDER BY from_generation')
    this.#unfinished = db.prepare(
      `SELECT * FROM sessions WHERE waiting_since IS NOT NULL AND (waiting_since, id) > (?, ?) AND waiting_since <= ?
        ORDER BY waiting_since, id LIMIT ?`,
    )
    this.#all = db.prepare('SELECT * FROM sessions WHERE id > ? AND id <= ? ORDER BY id LIMIT ?')
    this.#newest = db.prepare(
      `SELECT (SELECT max(waiting_since) FROM sessions WHERE waiting_since IS NOT NULL) AS unfinished,
        (SELECT max(id) FROM sessions) AS "all"`,
    )
  }

  load(sessionIds: readonly string[]): (LoadedSession | undefined)[] {
    return sessionIds.map((sessionId) => {
      const row = this.#find.get(sessionId)
      return row === undefined ? undefined : this.#tryRead(row)
    })
  }

  /** By the number of its row. */
  readNumbered(id: number): LoadedSession | undefined {
    const row = this.#numbered.get(id)
    return row === undefined ? undefined : this.#tryRead(row)
  }

  page(which: 'unfinished' | 'all', from: PageCursor | undefined): SessionPage {
    const cursor = from ?? { since: -Infinity, id: 0, newest: Number(this.#newest.get()?.[which] ?? -Infinity) }
    const { since, id, newest } = cursor
    const rows =
      which === 'all'
        ? this.#all.all(id, newest, PAGE_SESSIONS)
        : this.#unfinished.all(since, id, newest, PAGE_SESSIONS)
    const records: SessionRecord[] = []
    const damages: string[] = []
    for (const row of rows) {
      const read = this.#tryRead(row)
      if ('record' in read) records.push(read.record)
      else damages.push(read.damage)
    }
    const last = rows.length < PAGE_SESSIONS ? undefined : rows.at(-1)
    if (last === undefined) return { records, damages }
    return { records, damages, next: { since: Number(last['waiting_since']), id: last['id'] as number, newest } }
  }

  #tryRead(row: SqlRow): LoadedSession {
    try {
      return { record: this.#read(row) }
    } catch (error) {
      if (error instanceof TidemarkError) return { damage: error.message }
      throw error
    }
  }

  #read(row: SqlRow): SessionRecord {
    const id = row['id'] as number
    const segments: Segment[] = []
    const heads = new Map<number, number>()
    if (row['segments'] !== 0) {
      for (const segmentRow of this.#segments.all(id)) {
        const { segment, head } = decodeSegment(segmentRow)
        segments.push(segment)
        if (head !== 0) heads.set(segment.from, head)
      }
    }
    const tailHead = row['tail_head'] as number
    const turnIds = this.#turnIds(tailHead === 0 ? heads.values() : [...heads.values(), tailHead], id)
    return decodeSession(row, { segments, heads: heads.size === 0 ? undefined : heads, turnIds })
  }

  #turnIds(heads: Iterable<number>, session: number): TurnIds | undefined {
    let turnIds: TurnIds | undefined
    for (const head of heads) {
      for (const { turnId, generation } of this.#chains.walk(head, session)) {
        if (turnId !== undefined) turnIds = addTurnId(turnIds, turnId, generation)
      }
    }
    return turnIds
  }
}
