import type { Decision, OutboxEntry, SessionState } from '../core/index.js'

/**
 * Decides on one session. It is pure: time, ids and random keys are its arguments, because a ledger may run it more
 * than once before one of the runs becomes durable. A throw rejects only its own caller.
 */
export type Decide<R> = (state: SessionState) => Decision<R>

export interface SessionEntry {
  readonly sessionId: string
  readonly state: SessionState
}

export interface LedgerStats {
  /** Sessions with work that is neither committed, nor accepted, nor parked. */
  readonly dirtySessions: number
  /** When the oldest uncommitted turn was completed, epoch milliseconds. */
  readonly uncommittedSince: number | undefined
  /** Accepted segments whose receipt has not settled. */
  readonly unsettled: number
  /** Parked segments. */
  readonly parked: number
}

export interface LedgerHealth {
  readonly status: 'ok' | 'unhealthy'
  /** What is wrong, without message text. */
  readonly reason?: string
}

/** Where turns, segments, claims and watermarks are recorded. A ledger only stores; every decision is made in the core. */
export interface Ledger {
  /** `persistent`: survives the process. `shared`: several instances work on it side by side. */
  readonly supports: { readonly persistent: boolean; readonly shared: boolean }
  /** Names this opener; claims carry it. */
  readonly instance: string
  /** Opens files or connections. Called once, before anything else. */
  open(): Promise<void>
  /** Whether claims of this instance may still have a call behind them. */
  isAlive(instance: string): boolean
  /**
   * Runs `decide` on one session, atomically and in the order of the calls for that session, and resolves when what it
   * decided is as durable as this ledger makes it. Nothing is let out before that.
   */
  transact<R>(sessionId: string, decide: Decide<R>): Promise<Decision<R>>
  /** Sessions with uncommitted or unsettled work, the one that has waited longest first; or all that are known. */
  sessions(which: 'unfinished' | 'all'): AsyncIterable<SessionEntry>
  /** The outbox of a range, oldest turn first, read in pages. Turns that were handed over without text are not in it. */
  outbox(sessionId: string, from: number, to: number): AsyncIterable<OutboxEntry>
  stats(): Promise<LedgerStats>
  health(): LedgerHealth
  /** Idempotent. Later calls reject with the code `CLOSED`. */
  close(): Promise<void>
}
