import type { Features, OpenVikingProfile } from './profile.js'
import type { SessionLocks } from './locks.js'

export type TaskStatus = 'pending' | 'running' | 'cancelling' | 'completed' | 'failed' | 'cancelled'

export interface Part {
  readonly type: string
  readonly [key: string]: unknown
}

export interface StoredMessage {
  readonly id: string
  readonly role: string
  readonly parts: readonly Part[]
  readonly created_at: string
  readonly peer_id?: string
  /** Kept inside in every profile, so that `stats.extracted` can count; shown on the wire only by servers that know it. */
  readonly turn_id?: string
  readonly message_kind?: string
  readonly source_message_ids?: readonly string[]
}

export interface Archive {
  readonly n: number
  readonly messages: readonly StoredMessage[]
  state: 'pending' | 'done' | 'failed'
}

export interface Session {
  readonly id: string
  readonly owner: string
  live: StoredMessage[]
  readonly archives: Archive[]
  commitCount: number
  totalMessages: number
  keepRecentCount: number
  pendingTokens: number
  autoCommitPolicy: unknown
  memoriesExtracted: number
  readonly createdAt: string
  updatedAt: string
  lastCommitAt: string | null
  lastMessageAt: string | null
}

export interface Task {
  readonly id: string
  readonly owner: string
  readonly session: Session
  readonly archive: Archive
  readonly createdAt: number
  updatedAt: number
  status: TaskStatus
  result: Record<string, unknown> | null
  error: string | null
  /** False once only the disk has it: a finished task after a restart, which dev mode does not read (#4393). */
  cached: boolean
  /** Why the worker will refuse it: Phase 1 broke after it was queued. */
  doomed: string | null
}

export interface Memory {
  readonly owner: string
  readonly uri: string
  readonly text: string
}

export interface DoubleStats {
  /** Requests by operation, refused ones included. */
  readonly requests: Record<string, number>
  /** How often each turn id went through a finished extraction: 1 is right, 2 is learned twice, absent is lost. */
  readonly extracted: Record<string, number>
  /** The same for each of our message ids (`source_message_ids`). */
  readonly extractedMessages: Record<string, number>
}

/** Everything that survives a restart of the double, and the switches that tests turn. */
export interface World {
  readonly profile: OpenVikingProfile
  readonly features: Features
  readonly authMode: AuthMode
  /** By owner and id: tenants are disjoint (`service/task_tracker.py:328-339`). */
  readonly sessions: Map<string, Session>
  readonly tasks: Map<string, Task>
  readonly memories: Memory[]
  readonly locks: SessionLocks
  readonly stats: DoubleStats
  /** API key → who it is. */
  readonly keys: Map<string, Identity>
  ready: boolean
  autoCommitOver: number | undefined
}

export type AuthMode = 'dev' | 'api_key' | 'trusted'

export interface Identity {
  readonly account: string
  readonly user: string
  readonly role: 'root' | 'admin' | 'user'
}

export const ownerOf = (who: { readonly account: string; readonly user: string }): string =>
  `${who.account}/${who.user}`

export const sessionKey = (owner: string, id: string): string => `${owner}\n${id}`
