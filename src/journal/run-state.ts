import type { JournalEventName, RunState } from './types.js'

/** Every event, and whether it ends or seals a run; `terminal` mode makes those durable before they are acknowledged. */
export const ENDING_EVENTS: Readonly<Record<JournalEventName, boolean>> = Object.freeze({
  token: false,
  reasoning: false,
  interim: false,
  tool: false,
  tool_complete: false,
  done: true,
  cancel: true,
  error: true,
  stream_end: true,
})

export function isEventName(name: unknown): name is JournalEventName {
  return typeof name === 'string' && Object.hasOwn(ENDING_EVENTS, name)
}

/** The state of a run after one more event. A later ending replaces an earlier one; nothing else does. */
export function stateAfter(
  state: RunState,
  event: JournalEventName,
  payload: Readonly<Record<string, unknown>>,
): RunState {
  switch (event) {
    case 'token':
    case 'reasoning':
    case 'interim':
    case 'tool':
    case 'tool_complete':
      return state === 'unknown' ? 'running' : state
    case 'done':
      return 'completed'
    case 'cancel':
      return 'interrupted-by-user'
    case 'error':
      if (payload['type'] === 'cancelled') return 'interrupted-by-user'
      return payload['type'] === 'interrupted' ? 'interrupted-by-crash' : 'errored'
    case 'stream_end':
      return state === 'unknown' || state === 'running' ? 'ended' : state
    default:
      return event satisfies never
  }
}
