/** How an interrupted turn stands. `retrying`: its output may still turn up in the journal. */
export type Interruption =
  | { readonly state: 'retrying'; readonly runId: string; readonly attempts: number; readonly firstSeenAt: number }
  | { readonly state: 'recovered' | 'lost' | 'nothing' }

export interface Message {
  role: 'user' | 'assistant' | 'system' | 'tool'
  content: string
  /** Epoch milliseconds. */
  timestamp: number
  attachments?: unknown[]
  /** Output of a cancelled or interrupted run. */
  partial?: true
  /** Put here from the run journal. */
  recovered?: { readonly runId: string }
  /** On the assistant message that ends an interrupted turn; such a message is never sent to a model. */
  interruption?: Interruption
}

export interface ToolCall {
  name: string
  /** The message this call belongs to. */
  messageIndex: number
  done: boolean
  isError?: boolean
  durationMs?: number
  preview?: string
  args?: unknown
}

/** An interrupted run whose journal has no end yet, so that later output can still be merged. */
export interface Recovery {
  readonly runId: string
  readonly firstSeenAt: number
  /** The last event that was merged, and how many were: a lower count means that some are still missing. */
  readonly lastSeq: number
  readonly events: number
}

export interface Session {
  id: string
  title: string
  createdAt: number
  updatedAt: number
  messages: Message[]
  toolCalls: ToolCall[]
  metadata: Record<string, unknown>
  pendingUserMessage: string | null
  pendingAttachments: unknown[]
  pendingStartedAt: number | null
  /** How many messages there were when the pending turn began: its own come behind. */
  pendingFrom: number | null
  activeRunId: string | null
  recoveries: Recovery[]
  /** The snapshot this session was rotated from, and the id its life went on under. */
  rotatedFrom: string | null
  rotatedTo: string | null
}

export interface SessionEntry {
  readonly id: string
  readonly title: string
  readonly updatedAt: number
  readonly messageCount: number
}

export interface SaveOptions {
  /** Flush the file and its directory to stable storage. @default false */
  readonly fsync?: boolean
  /** Write the index entry as well. @default true */
  readonly index?: boolean
  /** Move `updatedAt`. @default true */
  readonly touch?: boolean
  /** Allow fewer messages than are on disk. @default false */
  readonly truncate?: boolean
}

export type TurnOutcome =
  | { readonly status: 'ended' | 'cancelled'; readonly sessionId: string }
  /** The session has moved on: nothing was changed, and this turn must not be marked as completed. */
  | { readonly status: 'moved'; readonly activeRunId: string | null }

export interface FlushReport {
  readonly flushed: number
  readonly failed: readonly { readonly id: string; readonly error: unknown }[]
}

/** A damaged transcript: what was before the damage was loaded, and the whole file was copied aside. */
export interface DamageReport {
  readonly sessionId: string
  readonly path: string
  /** `undefined`: copying failed; saving is refused until it works. */
  readonly copy: string | undefined
  readonly line: number
  readonly messagesKept: number
}

/** What the store asks of a run journal; `RunJournal` of `tidemark/journal` fits as it is. */
export interface JournalPort {
  append(sessionId: string, runId: string, event: 'done' | 'cancel', payload: Record<string, never>): Promise<unknown>
  read(sessionId: string, runId: string, options?: { readonly after?: number }): AsyncIterable<RunEvent>
  summary(sessionId: string, runId: string): Promise<{ readonly state: string; readonly damaged: readonly unknown[] }>
  delete(sessionId: string): Promise<unknown>
  move(fromSessionId: string, toSessionId: string, runId: string): Promise<unknown>
  markSaved(sessionId: string, runId: string): Promise<unknown>
}

export interface RunEvent {
  readonly seq: number
  readonly event: string
  readonly payload: Readonly<Record<string, unknown>>
  readonly at: number
}
