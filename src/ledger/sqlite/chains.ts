import type { SqlDatabase, SqlStatement, SqlValue } from '../../base/sqlite.js'
import type { OutboxEntry } from '../../core/index.js'
import { rowDamaged } from './failure.js'
import { decodeLink, decodeOutbox, LINK_COLUMNS, OUTBOX_COLUMNS, type OutboxLink, pushOutbox } from './outbox-row.js'

/** A page of outbox rows ends when it holds this many characters of text, or this many rows. */
const PAGE_CHARACTERS = 256 * 1024
const PAGE_ROWS = 256

/**
 * From the newest row of a segment back to its oldest. A step never leaves its session and never goes forward, so that
 * a damaged link can end a walk but cannot lead it into another session's text.
 */
const CHAIN = `
  WITH RECURSIVE chain (${LINK_COLUMNS.join(', ')}) AS (
    SELECT ${LINK_COLUMNS.join(', ')} FROM outbox WHERE id = ? AND session = ?
    UNION ALL
    SELECT ${LINK_COLUMNS.map((column) => `o.${column}`).join(', ')}
      FROM chain JOIN outbox AS o ON o.id = chain.previous
      WHERE o.session = chain.session AND o.id < chain.id
  )`

/** The outbox, segment by segment. */
export class Chains {
  readonly #walk: SqlStatement
  readonly #drop: SqlStatement
  readonly #wipe: SqlStatement
  readonly #read: SqlStatement
  readonly #slice: SqlStatement
  readonly #leave: SqlStatement
  readonly #leftover: SqlStatement
  readonly #remove: SqlStatement
  readonly #forget: SqlStatement

  constructor(db: SqlDatabase) {
    this.#walk = db.prepare(`${CHAIN} SELECT * FROM chain`)
    this.#drop = db.prepare(`${CHAIN} DELETE FROM outbox WHERE id IN (SELECT id FROM chain)`)
    this.#slice = db.prepare(`${CHAIN} SELECT id, previous FROM chain LIMIT ?`)
    this.#wipe = db.prepare(
      'UPDATE outbox SET checksum = ?, text_checksum = ?, turn_id = NULL, messages = NULL WHERE id = ?',
    )
    this.#read = db.prepare(`SELECT ${OUTBOX_COLUMNS.join(', ')} FROM outbox WHERE id = ? AND session = ?`)
    this.#leave = db.prepare('INSERT INTO leftovers (head, session) VALUES (?, ?)')
    this.#leftover = db.prepare('SELECT head, session FROM leftovers ORDER BY head LIMIT 1')
    this.#remove = db.prepare('DELETE FROM outbox WHERE id = ?')
    this.#forget = db.prepare('DELETE FROM leftovers WHERE head = ?')
  }

  /** Newest first. Throws `CORRUPT` if a link is damaged or missing. */
  *walk(head: number, session: number): Generator<OutboxLink> {
    let expected = head
    for (const row of this.#walk.iterate(head, session)) {
      const link = decodeLink(row)
      expected = link.previous
      yield link
    }
    if (expected !== 0) throw rowDamaged(`the chain at row ${expected} of the outbox`)
  }

  drop(head: number, session: number): void {
    this.#drop.run(head, session)
  }

  /** Takes the text and the id of retracted turns out of a segment that goes on. */
  wipe(range: { head: number; session: number; from: number; to: number }): void {
    const doomed = [...this.walk(range.head, range.session)].filter(
      ({ generation }) => range.from <= generation && generation <= range.to,
    )
    for (const link of doomed) {
      const at = this.#read.get(link.id, link.session)?.['completed_at'] as number
      const blank: SqlValue[] = []
      pushOutbox(blank, link, { generation: link.generation, at, turnId: undefined, messages: undefined })
      const [checksum = null, textChecksum = null] = blank.slice(OUTBOX_COLUMNS.indexOf('checksum'))
      this.#wipe.run(checksum, textChecksum, link.id)
    }
  }

  page(session: number, ids: readonly number[]): { entries: OutboxEntry[]; read: number } {
    const entries: OutboxEntry[] = []
    let characters = 0
    let read = 0
    for (const id of ids) {
      if (read === PAGE_ROWS || characters >= PAGE_CHARACTERS) break
      read += 1
      const row = this.#read.get(id, session)
      const entry = row === undefined ? undefined : decodeOutbox(row)
      if (entry?.messages === undefined) continue
      characters += entry.messages.length
      entries.push(entry)
    }
    return { entries, read }
  }

  /** Notes a long chain for `sweep`. */
  leave(head: number, session: number): void {
    this.#leave.run(head, session)
  }

  hasLeftovers(): boolean {
    return this.#leftover.get() !== undefined
  }

  /** Removes the newest rows of one chain that was left. */
  sweep(rows: number): void {
    const leftover = this.#leftover.get()
    if (leftover === undefined) return
    const session = leftover['session'] as number
    const slice = this.#slice.all(leftover['head'] as number, session, rows)
    for (const row of slice) this.#remove.run(row['id'] ?? null)
    this.#forget.run(leftover['head'] ?? null)
    const rest = slice.length < rows ? 0 : ((slice.at(-1)?.['previous'] ?? 0) as number)
    if (rest !== 0) this.leave(rest, session)
  }
}
