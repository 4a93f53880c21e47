import type { SqlDatabase, SqlStatement, SqlValue } from '../../base/sqlite.js'
import type { OutboxEntry } from '../../core/index.js'
import type { LedgerStats } from '../ledger.js'
import { type Changes, countChanges } from './changes.js'
import { Chains } from './chains.js'
import { MARK_COLUMNS, SESSION_COLUMNS } from './session-row.js'
import { SEGMENT_COLUMNS } from './segment-row.js'
import { OUTBOX_COLUMNS } from './outbox-row.js'
import { type LoadedSession, type PageCursor, type SessionPage, SessionReader } from './session-reader.js'
import { prepareStats } from './stats.js'

/** Free pages are given back to the file system once they are this many and a quarter of the file. */
const WORTH_SHRINKING_PAGES = 256
const SHRINK_SLICE_PAGES = 64
const SWEEP_SLICE_ROWS = 1_000

/** The rows of one open ledger file. All of it is synchronous; it knows no session cache and decides nothing. */
export class Store {
  readonly #db: SqlDatabase
  readonly #begin: SqlStatement
  readonly #commit: SqlStatement
  readonly #writers: Record<'append' | 'insert' | 'update' | 'mark' | 'segment' | 'remove', SqlStatement>
  readonly #chains: Chains
  readonly #sessions: SessionReader
  readonly #stats: () => LedgerStats
  readonly #pages: SqlStatement
  readonly #freePages: SqlStatement

  constructor(db: SqlDatabase) {
    this.#db = db
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#writers = {
      append: db.prepare(insertInto('outbox', OUTBOX_COLUMNS)),
      insert: db.prepare(insertInto('sessions', ['id', ...SESSION_COLUMNS])),
      update: db.prepare(`UPDATE sessions SET ${SESSION_COLUMNS.join(' = ?, ')} = ? WHERE id = ?`),
      mark: db.prepare(`UPDATE sessions SET ${MARK_COLUMNS.join(' = ?, ')} = ? WHERE id = ?`),
      segment: db.prepare(insertInto('segments', SEGMENT_COLUMNS).replace('INSERT', 'INSERT OR REPLACE')),
      remove: db.prepare('DELETE FROM segments WHERE session = ? AND from_generation = ?'),
    }
    this.#chains = new Chains(db)
    this.#sessions = new SessionReader(db, this.#chains)
    this.#stats = prepareStats(db)
    this.#pages = db.prepare('PRAGMA page_count')
    this.#freePages = db.prepare('PRAGMA freelist_count')
  }

  /** The next free row numbers. */
  numbers(): { nextSession: number; nextOutbox: number } {
    const newest = (table: string): number =>
      Number(this.#db.prepare(`SELECT max(id) AS newest FROM ${table}`).get()?.['newest'] ?? 0)
    return { nextSession: newest('sessions') + 1, nextOutbox: newest('outbox') + 1 }
  }

  /** Makes all of it durable, or throws and nothing of it was acknowledged. */
  apply(changes: Changes): void {
    const isSingle = countChanges(changes) === 1 && changes.marked.length === 1
    // One statement is a transaction of its own.
    if (!isSingle) this.#begin.run()
    const { append, insert, update, mark, segment, remove } = this.#writers
    runAll(append, changes.appended)
    for (const wiped of changes.wiped) this.#chains.wipe(wiped)
    for (const { head, session, isLong } of changes.dropped) {
      if (isLong) this.#chains.leave(head, session)
      else this.#chains.drop(head, session)
    }
    runAll(insert, changes.inserted)
    runAll(update, changes.updated)
    runAll(mark, changes.marked)
    runAll(remove, changes.removed)
    runAll(segment, changes.segments)
    if (!isSingle) this.#commit.run()
  }

  load(sessionIds: readonly string[]): (LoadedSession | undefined)[] {
    return this.#sessions.load(sessionIds)
  }

  page(which: 'unfinished' | 'all', cursor: PageCursor | undefined): SessionPage {
    return this.#sessions.page(which, cursor)
  }

  /** Outbox rows of a range that carry text, oldest first: their numbers only, so that a long segment stays small. */
  outboxRows(sessionId: string, from: number, to: number): { session: number; ids: number[] } {
    const places = this.#sessions.heads(sessionId, from, to)
    const ids: number[] = []
    for (const head of places.heads) {
      for (const link of this.#chains.walk(head, places.session)) {
        if (link.generation >= from && link.generation <= to) ids.push(link.id)
      }
    }
    return { session: places.session, ids: ids.reverse() }
  }

  /** The first of these rows, as many as fit into one page. Rows that are gone meanwhile are left out. */
  outboxPage(session: number, ids: readonly number[]): { entries: OutboxEntry[]; read: number } {
    return this.#chains.page(session, ids)
  }

  stats(): LedgerStats {
    return this.#stats()
  }

  /** A slice of the work nobody waits for. True while there is more. */
  tidy(): boolean {
    if (this.#chains.hasLeftovers()) {
      this.#begin.run()
      this.#chains.sweep(SWEEP_SLICE_ROWS)
      this.#commit.run()
      return true
    }
    const free = Number(Object.values(this.#freePages.get() ?? {})[0])
    const all = Number(Object.values(this.#pages.get() ?? {})[0])
    if (free < WORTH_SHRINKING_PAGES || free * 4 < all) return false
    this.#db.exec(`PRAGMA incremental_vacuum(${SHRINK_SLICE_PAGES})`)
    return true
  }
}

function insertInto(table: string, columns: readonly string[]): string {
  return `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
}

function runAll(statement: SqlStatement, rows: readonly (readonly SqlValue[])[]): void {
  for (const row of rows) statement.run(...row)
}
