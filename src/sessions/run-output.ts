import type { Message, RunEvent, ToolCall } from './types.js'

/** What a run has put out, as messages; the `messageIndex` of its tool calls counts from its first message. */
export interface RunOutput {
  readonly messages: readonly Message[]
  readonly toolCalls: readonly ToolCall[]
}

/** What the journal shows of a run. */
export interface RunView {
  readonly events: readonly RunEvent[]
  /** The last event that says how the run ended. */
  readonly ending: 'done' | 'cancel' | 'error' | undefined
  /** Nothing to read yet, and no end: it may still be on its way. */
  readonly arriving: boolean
}

/** Each event once, in order, whatever the journal handed out. */
export function viewOf(read: readonly RunEvent[], damaged: boolean): RunView {
  const bySeq = new Map(read.map((event) => [event.seq, event]))
  const events = [...bySeq.values()].sort((a, b) => a.seq - b.seq)
  const ending = events.findLast(({ event }) => event === 'done' || event === 'cancel' || event === 'error')?.event
  return { events, ending: ending as RunView['ending'], arriving: events.length === 0 && !damaged }
}

/**
 * Text that follows a tool call starts a message of its own, so order is kept and every tool card has the message it
 * belongs to. Reasoning is not part of a transcript.
 */
export function outputOf(runId: string, events: readonly RunEvent[], { partial }: { partial: boolean }): RunOutput {
  const messages: Message[] = []
  const toolCalls: ToolCall[] = []
  let open: Message | undefined
  const start = (content: string, timestamp: number): Message => {
    const message: Message = { role: 'assistant', content, timestamp, recovered: { runId } }
    if (partial) message.partial = true
    messages.push(message)
    return message
  }
  for (const { event, payload, at } of events) {
    if (event === 'token') {
      if (open === undefined) open = start(textOf(payload['text']), at)
      else open.content += textOf(payload['text'])
    } else if (event === 'interim') {
      start(textOf(payload['text']), at)
      open = undefined
    } else if (event === 'tool') {
      if (messages.length === 0) start('', at)
      toolCalls.push(startedCall(payload, messages.length - 1))
      open = undefined
    } else if (event === 'tool_complete') {
      completeCall(toolCalls, payload)
    }
  }
  return { messages, toolCalls }
}

function startedCall(payload: RunEvent['payload'], messageIndex: number): ToolCall {
  const { name, preview, args } = payload
  const call: ToolCall = { name: textOf(name), messageIndex, done: false }
  if (typeof preview === 'string') call.preview = preview
  if (args !== undefined) call.args = args
  return call
}

/** Tools of one name end in the order in which they started. */
function completeCall(toolCalls: readonly ToolCall[], payload: RunEvent['payload']): void {
  const call = toolCalls.find(({ name, done }) => !done && name === payload['name'])
  if (call === undefined) return
  call.done = true
  if (typeof payload['durationMs'] === 'number') call.durationMs = payload['durationMs']
  if (typeof payload['isError'] === 'boolean') call.isError = payload['isError']
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
