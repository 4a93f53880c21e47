export { TidemarkError } from './base/errors.js'
export type { TidemarkErrorCode, TidemarkErrorOptions } from './base/errors.js'
export type { Clock } from './base/clock.js'
export type { Logger } from './base/logger.js'
export type { Boundary, CommitReason } from './core/index.js'
export { memoryLedger } from './ledger/memory.js'
export type { Ledger } from './ledger/ledger.js'
export type { CommitAnswer, CompletedTurn, MemoryAgent, MemoryCommit, SettleAnswer } from './coordinator/agent.js'
export { MemoryLifecycle } from './coordinator/lifecycle.js'
export type { CommitOptions } from './coordinator/by-hand.js'
export type { EvictOptions } from './coordinator/lifecycle.js'
export type { SessionFilter } from './coordinator/snapshot.js'
export type { MarkOptions } from './coordinator/marker.js'
export type { EventName, LifecycleEvents, Listener } from './coordinator/events.js'
export type { LifecycleOptions, Owner, Revive, Transcript } from './coordinator/options.js'
export type {
  CommitOutcome,
  DrainReport,
  EvictReport,
  FlushReport,
  Health,
  RemainingReason,
  SegmentSnapshot,
  SessionSnapshot,
} from './coordinator/reports.js'
