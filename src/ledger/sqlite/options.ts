import type { Clock } from '../../base/clock.js'
import type { Logger } from '../../base/logger.js'

export interface SqliteLedgerOptions {
  /** The ledger file. Its directory is made if it is missing; both are private to this user. */
  readonly path: string
  /**
   * Keep the file on a thread of its own, so that the event loop never waits for a sync.
   * @default false
   */
  readonly worker?: boolean
  /**
   * Accept a path on NFS, SMB, FUSE and the like, where locks and syncs often mean less than they say.
   * @default false
   */
  readonly allowNetworkFileSystem?: boolean
  /**
   * pino-compatible; learns of failures of the disk and of damage.
   * @default silent
   */
  readonly logger?: Logger
  /** Where the time of opening comes from. */
  readonly clock?: Pick<Clock, 'now'>
}

/** Refuses nonsense before anything is opened. */
export function checkOptions(options: SqliteLedgerOptions): void {
  const path: unknown = options.path
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new TypeError(`sqliteLedger needs a path, a non-empty string without NUL; it got ${describe(path)}.`)
  }
  if (path === ':memory:') throw new TypeError('sqliteLedger keeps a file. For a ledger in memory use memoryLedger().')
  for (const name of ['worker', 'allowNetworkFileSystem'] as const) {
    const value: unknown = options[name]
    if (value !== undefined && typeof value !== 'boolean') {
      throw new TypeError(`sqliteLedger: ${name} must be true or false; it is ${describe(value)}.`)
    }
  }
}

function describe(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : `a value of type ${typeof value}`
}
