import type { CommitReason } from '../core/index.js'

/** One finished exchange of a session, as a provider gets to see it. */
export interface CompletedTurn {
  readonly sessionId: string
  readonly generation: number
  /** What the host handed over with the mark, or what its transcript source gives. */
  readonly messages: readonly unknown[]
  /** Epoch milliseconds. */
  readonly completedAt: number
}

/** One segment, offered to its owner: all that a provider needs to be exact. */
export interface MemoryCommit {
  readonly sessionId: string
  /** First and last generation of the segment, both included. */
  readonly from: number
  readonly to: number
  /** 1 for the first offer of this segment. */
  readonly attempt: number
  readonly reason: CommitReason
  /** The same for every attempt at this segment, also after a restart: a provider that remembers it is exactly-once. */
  readonly idempotencyKey: string
  /** Aborted when the time limit passes, at shutdown, or when another attempt has already succeeded. */
  readonly signal: AbortSignal
  /** The turns of the range, oldest first, read in pages: memory stays bounded for a segment of any length. */
  turns(): AsyncIterable<CompletedTurn>
}

/** `committed` and `nothing` end the segment; `accepted` keeps its text until the receipt settles. */
export type CommitAnswer =
  | { readonly status: 'committed' }
  | { readonly status: 'nothing' }
  | { readonly status: 'accepted'; readonly receipt: string }

export type SettleAnswer =
  | { readonly status: 'committed' }
  | { readonly status: 'pending' }
  | { readonly status: 'failed'; readonly error: unknown }

/** The live object that can commit a session's memory. */
export interface MemoryAgent {
  /** A stable identity. Without one the agent cannot be revived after a restart. */
  readonly agentId?: string
  /** The provider behind it, for fairness, health and metrics. */
  readonly provider?: string
  /** Returning nothing means `committed`; a throw or a rejection is a failed attempt. */
  commitMemorySession(commit: MemoryCommit): void | CommitAnswer | Promise<void | CommitAnswer>
  /** What became of an accepted segment. A throw means unknown: it is asked again. */
  settleMemoryCommit?(receipt: string, commit: MemoryCommit): void | SettleAnswer | Promise<void | SettleAnswer>
  close?(): void | Promise<void>
}
