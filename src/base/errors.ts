/**
 * Everything tidemark refuses, fails or gives up on carries one of these codes. A code is a promise: it is in
 * docs/errors.md, and its meaning does not change.
 */
export type TidemarkErrorCode =
  | 'ABORTED'
  | 'CLOSED'
  | 'COMMIT_ABANDONED'
  | 'COMMIT_ANSWER_INVALID'
  | 'CORRUPT'
  | 'DIMENSION_MISMATCH'
  | 'FACT_EXISTS'
  | 'FILE_FOREIGN'
  | 'FILE_NEWER'
  | 'FILE_SYSTEM_REFUSED'
  | 'LEDGER_FAILED'
  | 'LOCKED'
  | 'LOCK_REENTERED'
  | 'NOT_FOUND'
  | 'PROVIDER_FAILED'
  | 'REVIVED_STRANGER'
  | 'ROTATION_REFUSED'
  | 'RUN_ALIVE'
  | 'SESSION_EXISTS'
  | 'SESSION_SHRUNK'
  | 'SESSION_STALE'
  | 'SETTLE_EXPIRED'
  | 'SETTLE_FAILED'
  | 'SQLITE_MISSING'
  | 'TURN_TOO_LARGE'
  | 'WRITE_FAILED'

export interface TidemarkErrorOptions {
  readonly cause?: unknown
  /** Plain values that help a program: ids, counts, paths. Never message text, never a credential. */
  readonly details?: Readonly<Record<string, unknown>>
  /** Whether asking again may help. Providers set it to `false` to have a segment parked at once. */
  readonly retryable?: boolean
}

/** The one error class: `code` for programs; the message says what was expected, what was found and what to do. */
export class TidemarkError extends Error {
  override readonly name = 'TidemarkError'
  readonly code: TidemarkErrorCode
  readonly details: Readonly<Record<string, unknown>>
  readonly retryable?: boolean

  constructor(code: TidemarkErrorCode, message: string, options: TidemarkErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
    if (options.retryable !== undefined) this.retryable = options.retryable
  }
}
