/** A message as a model sees it, in the shape of OpenAI-compatible endpoints. */
export type ChatMessage =
  | { readonly role: 'system' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content: string; readonly toolCalls?: readonly ToolRequest[] }
  | { readonly role: 'tool'; readonly toolCallId: string; readonly content: string }

export interface ToolRequest {
  readonly id: string
  readonly name: string
  /** As the model wrote it: JSON, or an attempt at it. */
  readonly arguments: string
}

export type ModelEvent =
  { readonly type: 'text'; readonly text: string } | { readonly type: 'tool'; readonly request: ToolRequest }

export interface ModelInput {
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly ToolSchema[]
  readonly signal: AbortSignal
}

/** A tool in the format of OpenAI's function calls. */
export interface ToolSchema {
  readonly type: 'function'
  readonly function: { readonly name: string; readonly description: string; readonly parameters: object }
}

/** Answers a conversation piece by piece. Ends its stream soon after the signal is aborted. */
export interface Model {
  readonly name: string
  answer(input: ModelInput): AsyncIterable<ModelEvent>
}

/** The heading that `turns` puts above what memory recalled, and that the offline model looks for. */
export const RECALLED = 'What you remember from earlier conversations:'

/** A failure whose message is fit for the user. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}
