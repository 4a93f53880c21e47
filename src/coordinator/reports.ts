import type { CommitReason, Range } from '../core/index.js'

/** What one commit came to. */
export type CommitOutcome =
  | { readonly status: 'committed' | 'accepted'; readonly from: number; readonly to: number; readonly attempt: number }
  /** Nothing to commit. */
  | { readonly status: 'clean' }
  /** Another commit of this session is under way. */
  | { readonly status: 'busy' }
  /** The caller stopped waiting; a call already begun goes on. */
  | { readonly status: 'aborted' }
  /** The owner is nobody, or is gone and cannot be revived. */
  | { readonly status: 'unowned'; readonly from: number; readonly to: number; readonly agentId?: string }
  | {
      readonly status: 'failed' | 'parked'
      readonly from: number
      readonly to: number
      readonly attempt: number
      /** What the provider threw; for a segment parked earlier, the description that was kept. */
      readonly error: unknown
    }

export interface FlushReport {
  readonly committed: number
  readonly accepted: number
  readonly failed: number
  readonly parked: number
  /** No uncommitted work is left. */
  readonly clean: boolean
}

export type RemainingReason = 'in-flight' | 'failing' | 'unowned' | 'parked' | 'not-started'

export interface EvictReport {
  /** Every agent this eviction found is closed. */
  readonly closed: boolean
  readonly clean: boolean
  readonly remaining: readonly (Range & { readonly reason: RemainingReason | 'unsettled' })[]
}

/** Counts are segments. */
export interface DrainReport {
  readonly committed: number
  readonly accepted: number
  /** Segments whose last attempt in this drain failed. */
  readonly failed: number
  readonly parked: number
  /** Given to another instance (shared ledgers). */
  readonly handedOver: number
  readonly remaining: readonly (Range & { readonly sessionId: string; readonly reason: RemainingReason })[]
  readonly timedOut: boolean
  readonly durationMs: number
}

export interface SegmentSnapshot extends Range {
  readonly owner: string | undefined
  readonly state: 'dirty' | 'claimed' | 'accepted' | 'parked'
  readonly attempts: number
  readonly error?: string
}

export interface SessionSnapshot {
  readonly sessionId: string
  readonly generation: number
  readonly watermark: number
  readonly segments: readonly SegmentSnapshot[]
  /** A provider call of this session is under way in this process. */
  readonly inFlight: boolean
  /** The current agent. */
  readonly agentId?: string
  /** A boundary that has come and is not worked off. */
  readonly boundary?: CommitReason
  readonly rotatedTo?: string
}

export interface Health {
  readonly status: 'ok' | 'degraded' | 'unhealthy'
  readonly dirtySessions: number
  readonly oldestUncommittedAgeMs: number | undefined
  readonly inFlight: number
  readonly longestInFlightMs: number | undefined
  readonly unsettled: number
  readonly parked: number
  /** Epoch milliseconds. */
  readonly lastSuccessAt: number | undefined
  readonly ledger: 'ok' | 'unhealthy'
  readonly reasons: readonly string[]
}
