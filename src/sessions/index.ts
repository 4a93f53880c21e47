export type { Checkpointer } from './checkpointer.js'
export type { SessionStoreOptions } from './options.js'
export type { RecoveryLimits } from './recovery-plan.js'
export { SessionStore } from './session-store.js'
export { contextMessages } from './transcript.js'
export type { AnswerMessage, BeginTurn, EndTurn } from './turns.js'
export type {
  DamageReport,
  FlushReport,
  Interruption,
  JournalPort,
  Message,
  Recovery,
  RunEvent,
  SaveOptions,
  Session,
  SessionEntry,
  ToolCall,
  TurnOutcome,
} from './types.js'
