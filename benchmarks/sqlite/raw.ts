import { join } from 'node:path'
import { loadSqlite, type SqlDatabase } from '../../src/base/sqlite.js'

/** The least that SQLite itself can be asked to do with the same settings: rows in the order of their arrival. */
export async function openRaw(directory: string): Promise<SqlDatabase> {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(join(directory, 'raw.db'))
  const pragmas = ['auto_vacuum = INCREMENTAL', 'locking_mode = EXCLUSIVE', 'journal_mode = WAL', 'synchronous = FULL']
  pragmas.push('fullfsync = ON', 'checkpoint_fullfsync = ON', 'wal_autocheckpoint = 1000')
  for (const pragma of pragmas) db.exec(`PRAGMA ${pragma}`)
  db.exec('CREATE TABLE texts (id INTEGER PRIMARY KEY, text TEXT)')
  db.exec('CREATE TABLE marks (id INTEGER PRIMARY KEY, session INTEGER, generation INTEGER)')
  return db
}

export const BATCH = 1_000

/** Batches of a thousand rows, each batch one durable transaction. */
export function insertBatches(db: SqlDatabase, rows: number, text: string | undefined): number {
  const insert =
    text === undefined
      ? db.prepare('INSERT INTO marks (session, generation) VALUES (?, ?)')
      : db.prepare('INSERT INTO texts (text) VALUES (?)')
  for (let batch = 0; batch < rows / BATCH; batch += 1) {
    db.exec('BEGIN')
    for (let row = 0; row < BATCH; row += 1) {
      if (text === undefined) insert.run(row, batch)
      else insert.run(text)
    }
    db.exec('COMMIT')
  }
  return rows
}

/** One row, one durable transaction, one after the other. */
export function insertSingly(db: SqlDatabase, rows: number, text: string): number {
  const insert = db.prepare('INSERT INTO texts (text) VALUES (?)')
  for (let row = 0; row < rows; row += 1) insert.run(text)
  return rows
}
