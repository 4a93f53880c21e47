import { TidemarkError } from '../../base/errors.js'

/** Primary result codes of SQLite that mean something to a ledger. */
export const SQLITE_BUSY = 5
export const SQLITE_CORRUPT = 11
export const SQLITE_NOTADB = 26

/** The primary result code of an error from the driver; `undefined` for any other error. */
export function sqliteCode(error: unknown): number | undefined {
  const { errcode } = (error ?? {}) as { errcode?: unknown }
  return typeof errcode === 'number' ? errcode & 0xff : undefined
}

export function isDamage(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === SQLITE_CORRUPT || code === SQLITE_NOTADB
}

/** What a person may read of a failure: SQLite's own words, which name no row and no text. */
export function describeFailure(error: unknown): string {
  if (error instanceof TidemarkError) return error.message
  if (error instanceof Error) {
    const { errstr } = error as { errstr?: unknown }
    return typeof errstr === 'string' && errstr !== error.message ? `${error.message} (${errstr})` : error.message
  }
  return String(error)
}

/** A batch that could not be made durable. What it held may or may not be in the file: a mark with a `turnId` can be repeated. */
export function ledgerFailed(path: string, error: unknown): TidemarkError {
  return new TidemarkError(
    'LEDGER_FAILED',
    `The ledger ${path} could not make a change durable: ${describeFailure(error)}. Whether it was stored is not known; ` +
      'the next call opens the file anew. Check the disk, then repeat the call (a mark with its turnId).',
    { cause: error, details: { path, sqliteCode: sqliteCode(error) }, retryable: true },
  )
}

/** The ledger could not be opened, for a reason that has no code of its own: the disk, the rights, the directory. */
export function openFailed(path: string, error: unknown): TidemarkError {
  if (error instanceof TidemarkError) return error
  return new TidemarkError(
    'LEDGER_FAILED',
    `The ledger ${path} could not be opened: ${describeFailure(error)}. Check that its directory exists, can be written ` +
      'and has room; nothing was changed.',
    { cause: error, details: { path, sqliteCode: sqliteCode(error) }, retryable: true },
  )
}

/** What is wrong with the file as a whole: findings of our own take the same way as those of SQLite. */
export function fileDamaged(what: string): Error {
  return Object.assign(new Error(what), { errcode: SQLITE_CORRUPT })
}

export function rowDamaged(what: string): TidemarkError {
  return new TidemarkError(
    'CORRUPT',
    `The ledger holds a damaged record: the checksum of ${what} does not fit what was read. ` +
      'Nothing of it was used. Stop the process, keep a copy of the file and restore a backup.',
    { details: { record: what } },
  )
}

/**
 * An error holds on to the objects of its stack frames until somebody reads its stack as text. Those are the statements
 * of the handle that failed, and with them its lock.
 */
export function releaseFrames(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined
}

/** Runs what may fail without harm, and hands the error over instead of throwing it. */
export function attempt(run: () => void): unknown {
  try {
    run()
    return undefined
  } catch (error) {
    return error
  }
}
