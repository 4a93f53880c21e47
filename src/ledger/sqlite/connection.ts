import { randomUUID } from 'node:crypto'
import { TidemarkError } from '../../base/errors.js'
import { loadSqlite, type SqlDatabase } from '../../base/sqlite.js'
import { catchUp } from './catch-up.js'
import { attempt, describeFailure, isDamage, releaseFrames, SQLITE_BUSY, sqliteCode } from './failure.js'
import { keepLog, keepRest, lockedBy, preparePrivateFile, readHolder, writeHolder } from './files.js'
import { inspectLedger } from './inspect.js'
import { setPragma } from './pragma.js'
import { abandonConnection, collectClosed } from './release.js'
import { migrate } from './schema.js'

export interface ConnectionOptions {
  readonly path: string
  readonly allowNetworkFileSystem: boolean
  /** Epoch milliseconds. */
  readonly at: number
}

type OpenFile = (path: string) => SqlDatabase

/** Each is set and read back: several builds of SQLite ignore or soften one of them. */
const PRAGMAS: readonly (readonly [name: string, value: string, expected: string | number])[] = [
  ['journal_mode', 'WAL', 'wal'],
  // Anything less lost every acknowledged row when the power was cut.
  ['synchronous', 'FULL', 2],
  ['fullfsync', 'ON', 1],
  ['checkpoint_fullfsync', 'ON', 1],
  ['trusted_schema', 'OFF', 0],
  ['cell_size_check', 'ON', 1],
  ['wal_autocheckpoint', '1000', 1000],
  // The log does not stay at the size of its largest batch.
  ['journal_size_limit', '16777216', 16777216],
]

/**
 * Opens the ledger for this process alone, checks all of it and brings it up to date. A damaged file is moved aside and
 * reported: nothing of it is lost, and nothing starts empty without a word.
 */
export async function openConnection(options: ConnectionOptions, isRetry = false): Promise<SqlDatabase> {
  const { path, at } = options
  const { DatabaseSync } = await loadSqlite()
  const isNew = await preparePrivateFile(path, options.allowNetworkFileSystem)
  const open: OpenFile = (file) => new DatabaseSync(file, { timeout: 0 })
  let db: SqlDatabase | undefined
  try {
    db = open(path)
    // Counts only before the first page is written: space is given back little by little.
    if (isNew) db.exec('PRAGMA auto_vacuum = INCREMENTAL')
    try {
      await prepare(db, options, open)
    } catch (error) {
      // A read that failed can look like damage: only what is found twice is believed. The log stays, the handle is open.
      if (!isDamage(error)) throw error
      attempt(() => db?.exec('ROLLBACK'))
      await prepare(db, options, open)
    }
    return db
  } catch (error) {
    releaseFrames(error)
    const holder = await readHolder(path).catch(() => undefined)
    if (isLocked(error)) {
      db?.close()
      // It may be a handle of our own that failed before and has not been collected yet.
      if (!isRetry && holder?.pid === process.pid && (await collectClosed())) return openConnection(options, true)
      throw lockedBy(path, holder)
    }
    // Without a holder's note it never was a ledger: somebody gave a wrong path, and their file stays where it is.
    let keptAs: string | undefined
    try {
      if (isDamage(error) && holder !== undefined) keptAs = await keepLog(path, at)
    } finally {
      if (db !== undefined) await abandonConnection(db)
    }
    throw isDamage(error) ? await reportDamage(path, keptAs, error, open) : error
  }
}

async function prepare(db: SqlDatabase, { path, at }: ConnectionOptions, open: OpenFile): Promise<void> {
  takeLock(db)
  const version = await inspectLedger(db, path, () => open(':memory:'))
  for (const [name, value, expected] of PRAGMAS) setPragma(db, name, value, expected)
  migrate(db, version)
  await writeHolder(path, signIn(db, at), at)
}

/** The first access takes the lock; with a time-out of 0 a second process is refused at once. */
function takeLock(db: SqlDatabase): void {
  db.exec('PRAGMA busy_timeout = 0')
  db.exec('PRAGMA locking_mode = EXCLUSIVE')
  db.exec('BEGIN EXCLUSIVE')
  db.exec('COMMIT')
}

function isLocked(error: unknown): boolean {
  return sqliteCode(error) === SQLITE_BUSY
}

/**
 * A write that is synced, before anything is promised: it proves that the disk takes writes, and the checkpoint after
 * it writes anew whatever an earlier sync may have failed to bring to the disk.
 */
function signIn(db: SqlDatabase, at: number): string {
  db.exec('BEGIN IMMEDIATE')
  const known = db.prepare('SELECT ledger_id FROM ledger').get()?.['ledger_id']
  const ledgerId = typeof known === 'string' ? known : randomUUID()
  if (known === undefined) {
    db.prepare('INSERT INTO ledger (ledger_id, created_at, opened_at) VALUES (?, ?, ?)').run(ledgerId, at, at)
  } else {
    db.prepare('UPDATE ledger SET opened_at = ?').run(at)
  }
  catchUp(db)
  db.exec('COMMIT')
  checkpoint(db)
  return ledgerId
}

function checkpoint(db: SqlDatabase): void {
  const answer = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
  if (answer?.['busy'] !== 0) throw new Error('the write-ahead log could not be brought into the ledger')
}

/** Moves the damaged file, if it is certain that no handle, not even our own, is still at it. */
async function reportDamage(
  path: string,
  keptAs: string | undefined,
  error: unknown,
  open: OpenFile,
): Promise<TidemarkError> {
  const finding = describeFailure(error)
  const canMove = keptAs !== undefined && probe(open(path))
  if (canMove) await keepRest(path, keptAs)
  const kept = canMove ? keptAs : path
  return new TidemarkError(
    'CORRUPT',
    `The ledger ${path} is damaged: ${finding}. Nothing was deleted, it was kept as ${kept}. ` +
      `Restore a backup to ${path}; or, to begin with an empty ledger, open it again once nothing is at that path.`,
    { details: { path, keptAs: kept, finding }, cause: error },
  )
}

/** Without prepared statements a handle closes at once, whatever the driver. */
function probe(db: SqlDatabase): boolean {
  try {
    takeLock(db)
    return true
  } catch (error) {
    return !isLocked(error)
  } finally {
    db.close()
  }
}
