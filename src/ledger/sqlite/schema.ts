import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase } from '../../base/sqlite.js'
import { readPragma } from './pragma.js'

/** "tide" in the header of the file: tells a ledger from any other SQLite database. */
export const APPLICATION_ID = 0x74696465

/**
 * One row a session ever seen: the numbers and the tail. Rows of `segments` are everything else that is not done. `outbox` is in arrival order, because clustering it by session costs a factor of
 * four; each row names the one before it in its segment, and `head` names the newest, so that reading or dropping a
 * segment never touches another one. `leftovers` are chains of long segments that are removed little by little.
 */
const VERSION_1 = `
CREATE TABLE ledger (
  ledger_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  opened_at INTEGER NOT NULL
);
CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  session_id TEXT NOT NULL UNIQUE,
  generation INTEGER NOT NULL,
  tail_span INTEGER,
  tail_head INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  token INTEGER NOT NULL,
  segments INTEGER NOT NULL,
  waiting_since INTEGER,
  retracted INTEGER NOT NULL,
  boundary_reason TEXT,
  boundary_through INTEGER,
  bounded_at INTEGER,
  rotated_to TEXT,
  tail_from INTEGER,
  tail_owner TEXT,
  tail_since INTEGER,
  tail_gaps TEXT,
  tail_gap_before INTEGER
);
CREATE INDEX sessions_unfinished ON sessions (waiting_since) WHERE waiting_since IS NOT NULL;
CREATE TABLE segments (
  session INTEGER NOT NULL,
  from_generation INTEGER NOT NULL,
  to_generation INTEGER NOT NULL,
  state TEXT NOT NULL,
  owner TEXT,
  since INTEGER NOT NULL,
  span INTEGER NOT NULL,
  gaps TEXT,
  gap_before INTEGER,
  head INTEGER NOT NULL,
  idempotency_key TEXT,
  attempts INTEGER,
  error TEXT,
  retry_at INTEGER,
  token INTEGER,
  instance TEXT,
  reason TEXT,
  claimed_at INTEGER,
  receipt TEXT,
  ask_at INTEGER,
  asks INTEGER,
  settle_by INTEGER,
  checksum INTEGER NOT NULL,
  PRIMARY KEY (session, from_generation)
) WITHOUT ROWID;
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY,
  previous INTEGER NOT NULL,
  session INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  completed_at INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  text_checksum INTEGER NOT NULL,
  turn_id TEXT,
  messages TEXT
);
CREATE TABLE leftovers (
  head INTEGER PRIMARY KEY,
  session INTEGER NOT NULL
);
`

/**
 * Sessions need not know the newest rows of their tail (see `write-behind.ts`): up to this row of the outbox all of them
 * do. The guard is its complement, so that a flipped bit is seen; then every row is looked at.
 */
const VERSION_2 = `
ALTER TABLE ledger ADD COLUMN written_through INTEGER NOT NULL DEFAULT 0;
ALTER TABLE ledger ADD COLUMN written_guard INTEGER NOT NULL DEFAULT -1;
`

/** Step n brings a file from version n to n + 1. Steps that were released are never edited. */
export const MIGRATIONS: readonly string[] = Object.freeze([VERSION_1, VERSION_2])

/** Refuses a file from a newer tidemark, untouched: this version cannot know what its rows mean. */
export function refuseNewer(db: SqlDatabase, path: string, known: number = MIGRATIONS.length): number {
  const version = Number(readPragma(db, 'user_version'))
  if (version > known) {
    throw new TidemarkError(
      'FILE_NEWER',
      `The ledger ${path} has version ${version}; this tidemark knows versions up to ${known}. ` +
        'It was left as it is. Use the tidemark that wrote it, or a newer one.',
      { details: { path, version, known } },
    )
  }
  return version
}

/** Brings the file from `version` up to `target`, all steps or none. */
export function migrate(
  db: SqlDatabase,
  version: number,
  target: number = MIGRATIONS.length,
  migrations: readonly string[] = MIGRATIONS,
): void {
  if (version === target) return
  db.exec('BEGIN IMMEDIATE')
  try {
    for (const step of migrations.slice(version, target)) db.exec(step)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.exec(`PRAGMA user_version = ${target}`)
    db.exec('COMMIT')
  } catch (error) {
    db.exec('ROLLBACK')
    throw error
  }
}

/** The tables as they stand in the file. A damaged definition would make every later answer wrong. */
export function readSchema(db: SqlDatabase): string {
  const rows = db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all()
  return JSON.stringify(rows.map((row) => [row['type'], row['name'], row['tbl_name'], row['sql']]))
}
