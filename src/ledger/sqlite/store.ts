import type { SqlDatabase, SqlStatement, SqlValue } from '../../base/sqlite.js'
import type { OutboxEntry } from '../../core/index.js'
import type { LedgerStats } from '../ledger.js'
import { type Changes, countAppended, countChanges } from './changes.js'
import { Chains } from './chains.js'
import { SESSION_COLUMNS, UPDATE_MARK } from './session-row.js'
import { SEGMENT_COLUMNS } from './segment-row.js'
import { OUTBOX_COLUMNS } from './outbox-row.js'
import { type LoadedSession, type PageCursor, type SessionPage, SessionReader } from './session-reader.js'
import { prepareStats } from './stats.js'
import { NOTE_WRITTEN, readWrittenThrough } from './written-through.js'

/** Free pages are given back to the file system once they are this many and a quarter of the file. */
const WORTH_SHRINKING_PAGES = 256
const SHRINK_SLICE_PAGES = 64
const SWEEP_SLICE_ROWS = 1_000
const APPEND_ROWS = 16

/** The rows of one open ledger file. All of it is synchronous; it knows no session cache and decides nothing. */
export class Store {
  readonly #db: SqlDatabase
  readonly #begin: SqlStatement
  readonly #commit: SqlStatement
  readonly #append: (values: readonly SqlValue[]) => void
  readonly #writers: Record<'insert' | 'update' | 'mark' | 'segment' | 'remove' | 'note', SqlStatement>
  readonly #chains: Chains
  readonly #sessions: SessionReader
  readonly #stats: () => LedgerStats
  readonly #pages: SqlStatement
  readonly #freePages: SqlStatement

  constructor(db: SqlDatabase) {
    this.#db = db
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#append = prepareAppend(db)
    this.#writers = {
      insert: db.prepare(insertInto('sessions', ['id', ...SESSION_COLUMNS])),
      update: db.prepare(`UPDATE sessions SET ${SESSION_COLUMNS.join(' = ?, ')} = ? WHERE id = ?`),
      mark: db.prepare(UPDATE_MARK),
      segment: db.prepare(insertInto('segments', SEGMENT_COLUMNS).replace('INSERT', 'INSERT OR REPLACE')),
      remove: db.prepare('DELETE FROM segments WHERE session = ? AND from_generation = ?'),
      note: db.prepare(NOTE_WRITTEN),
    }
    this.#chains = new Chains(db)
    this.#sessions = new SessionReader(db, this.#chains)
    this.#stats = prepareStats(db)
    this.#pages = db.prepare('PRAGMA page_count')
    this.#freePages = db.prepare('PRAGMA freelist_count')
  }

  /** The next free row numbers. A row of the outbox comes after all that are noted as written, gone or not. */
  numbers(): { nextSession: number; nextOutbox: number } {
    const newest = this.#db.prepare('SELECT max(id) AS newest FROM sessions').get()?.['newest']
    return { nextSession: Number(newest ?? 0) + 1, nextOutbox: readWrittenThrough(this.#db) + 1 }
  }

  /** Makes all of it durable, or throws and nothing of it was acknowledged. */
  apply(changes: Changes): void {
    // One statement is a transaction of its own.
    const isSingle = countChanges(changes) === 1 && countAppended(changes) + changes.marked.length === 1
    if (!isSingle) this.#begin.run()
    const { insert, update, mark, segment, remove, note } = this.#writers
    this.#append(changes.appended)
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
    for (const through of changes.noted) note.run(through)
    if (!isSingle) this.#commit.run()
  }

  load(sessionIds: readonly string[]): (LoadedSession | undefined)[] {
    return this.#sessions.load(sessionIds)
  }

  page(which: 'unfinished' | 'all', cursor: PageCursor | undefined): SessionPage {
    return this.#sessions.page(which, cursor)
  }

  /** Outbox rows of a range in these chains, oldest first: their numbers only, so that a long segment stays small. */
  outboxRows(session: number, heads: readonly number[], from: number, to: number): number[] {
    const ids: number[] = []
    for (const head of heads) {
      for (const link of this.#chains.walk(head, session)) {
        if (link.generation >= from && link.generation <= to) ids.push(link.id)
      }
    }
    return ids.reverse()
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

/** Most of the time of a large batch goes into this table: one statement for many rows is a quarter cheaper. */
function prepareAppend(db: SqlDatabase): (values: readonly SqlValue[]) => void {
  const one = insertInto('outbox', OUTBOX_COLUMNS)
  const [, row = ''] = one.split(' VALUES ')
  const single = db.prepare(one)
  const many = db.prepare(one + `, ${row}`.repeat(APPEND_ROWS - 1))
  const width = OUTBOX_COLUMNS.length
  return (values) => {
    let at = 0
    for (const step = APPEND_ROWS * width; at + step <= values.length; at += step)
      many.run(...values.slice(at, at + step))
    for (; at < values.length; at += width) single.run(...values.slice(at, at + width))
  }
}

function runAll(statement: SqlStatement, rows: readonly (readonly SqlValue[])[]): void {
  for (const row of rows) statement.run(...row)
}
