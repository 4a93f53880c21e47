import type { SqlDatabase, SqlRow, SqlStatement, SqlValue } from '../../base/sqlite.js'
import { TidemarkError } from '../../base/errors.js'
import { asTidemarkError } from './sqlite-errors.js'

/**
 * One handle with its prepared statements. Everything on it is synchronous: between BEGIN and COMMIT no other code of
 * this process runs, so several handles on one file never wait for each other within a process.
 */
export class Connection {
  readonly path: string
  readonly database: SqlDatabase
  readonly #statements = new Map<string, SqlStatement>()
  #open = true

  constructor(db: SqlDatabase, path: string) {
    this.database = db
    this.path = path
  }

  get(sql: string, ...values: SqlValue[]): SqlRow | undefined {
    return this.#prepare(sql).get(...values)
  }

  all(sql: string, ...values: SqlValue[]): SqlRow[] {
    return this.#prepare(sql).all(...values)
  }

  iterate(sql: string, ...values: SqlValue[]): IterableIterator<SqlRow> {
    return this.#prepare(sql).iterate(...values)
  }

  /** The id of the inserted row, if it was an INSERT. */
  run(sql: string, ...values: SqlValue[]): { changes: number; id: number } {
    const { changes, lastInsertRowid } = this.#prepare(sql).run(...values)
    return { changes: Number(changes), id: Number(lastInsertRowid) }
  }

  /** For statements without values that run once: pragmas and the schema. */
  exec(sql: string): void {
    this.database.exec(sql)
  }

  /** All of it or nothing. IMMEDIATE, because a read that later wants to write may fail at once however long it could wait. */
  write<T>(work: () => T): T {
    return this.#bracket('BEGIN IMMEDIATE', work)
  }

  /** Several reads that see one moment. */
  read<T>(work: () => T): T {
    return this.#bracket('BEGIN', work)
  }

  /** Runs something that is not inside a transaction of ours, with errors that carry our codes. */
  guard<T>(work: () => T): T {
    if (!this.#open) throw new TidemarkError('CLOSED', 'This HolographicProvider is closed; open it again to use it')
    try {
      return work()
    } catch (error) {
      throw asTidemarkError(error, this.path)
    }
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#statements.clear()
    try {
      // What is in the log moves into the file, as far as nobody reads it: whoever copies the file has all of it.
      this.database.exec('PRAGMA wal_checkpoint(PASSIVE)')
    } finally {
      this.database.close()
    }
  }

  #bracket<T>(begin: string, work: () => T): T {
    this.database.exec(begin)
    try {
      const result = work()
      this.database.exec('COMMIT')
      return result
    } catch (error) {
      this.#rollBack(error)
      throw error
    }
  }

  /** A full disk makes SQLite roll back by itself, and then there is nothing left to roll back: the first error counts. */
  #rollBack(first: unknown): void {
    try {
      this.database.exec('ROLLBACK')
    } catch (second) {
      if (first instanceof Error && first.cause === undefined) first.cause = second
    }
  }

  #prepare(sql: string): SqlStatement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.database.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }
}
