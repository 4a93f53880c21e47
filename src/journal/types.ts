/** What each event carries. */
export interface JournalPayloads {
  token: { readonly text: string }
  reasoning: { readonly text: string }
  interim: { readonly text: string }
  tool: { readonly name: string; readonly preview?: string; readonly args?: unknown }
  tool_complete: { readonly name: string; readonly durationMs?: number; readonly isError?: boolean }
  done: Readonly<Record<string, unknown>>
  cancel: Readonly<Record<string, unknown>>
  error: { readonly message: string; readonly type?: string }
  stream_end: Readonly<Record<string, unknown>>
}

export type JournalEventName = keyof JournalPayloads

export interface JournalEvent {
  readonly seq: number
  readonly event: JournalEventName
  readonly payload: Readonly<Record<string, unknown>>
  /** Epoch milliseconds. */
  readonly at: number
}

export type RunState =
  | 'completed'
  | 'interrupted-by-user'
  | 'interrupted-by-crash'
  | 'errored'
  /** Sealed without saying how it ended. */
  | 'ended'
  | 'running'
  /** There is no journal of this run. */
  | 'unknown'

export interface RunSummary {
  readonly state: RunState
  readonly lastSeq: number
  /** Damaged lines, counted from 1; the first line of a file is its header. */
  readonly damaged: readonly { readonly line: number }[]
}

export interface PruneReport {
  readonly removed: number
  readonly bytes: number
}
