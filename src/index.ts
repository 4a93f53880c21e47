export { TidemarkError } from './base/errors.js'
export type { TidemarkErrorCode, TidemarkErrorOptions } from './base/errors.js'
export type { Clock } from './base/clock.js'
export type { Logger } from './base/logger.js'
export type {
  Boundary,
  CommitAnswer,
  CommitReason,
  CompletedTurn,
  MemoryAgent,
  MemoryCommit,
  SettleAnswer,
} from './coordinator/agent.js'
