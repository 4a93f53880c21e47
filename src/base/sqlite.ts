import { TidemarkError } from './errors.js'

/** The part of the `node:sqlite` API that tidemark uses; `@photostructure/sqlite` has the same one. */
export type SqlValue = null | number | bigint | string | Uint8Array
export type SqlRow = Record<string, SqlValue>

export interface SqlStatement {
  run(...values: SqlValue[]): { changes: number | bigint; lastInsertRowid: number | bigint }
  get(...values: SqlValue[]): SqlRow | undefined
  all(...values: SqlValue[]): SqlRow[]
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>
}

export interface SqlDatabase {
  exec(sql: string): void
  prepare(sql: string): SqlStatement
  close(): void
}

interface SqliteModule {
  DatabaseSync: new (path: string, options?: { readOnly?: boolean; timeout?: number }) => SqlDatabase
}

/**
 * The SQLite of this Node: built in from 22.13 on, the optional dependency before that. Loaded on first use, because
 * somebody who keeps turns in memory only should not need either.
 */
export async function loadSqlite(): Promise<SqliteModule> {
  const reasons: unknown[] = []
  for (const name of ['node:sqlite', '@photostructure/sqlite']) {
    try {
      return (await import(name)) as SqliteModule
    } catch (error) {
      reasons.push(error)
    }
  }
  throw new TidemarkError(
    'SQLITE_MISSING',
    `No SQLite found: Node ${process.versions.node} has no node:sqlite (built in from 22.13), and the optional dependency ` +
      '@photostructure/sqlite is not installed. Use a newer Node, or install it: npm install @photostructure/sqlite@~1.2',
    { cause: new AggregateError(reasons) },
  )
}
