import type { Session } from './types.js'

/**
 * Remembers a session as it is, and gives what puts it back after a failed save: otherwise a caller who tries again
 * would find its work half done in memory and nowhere on disk.
 */
export function remember(session: Session): () => void {
  const { messages, toolCalls } = session
  const fields = { ...session }
  const messageCopy = [...messages]
  const callCopy = [...toolCalls]
  return () => {
    Object.assign(session, fields)
    refill(messages, messageCopy)
    refill(toolCalls, callCopy)
  }
}

/** The same for a change that only appends: it costs the same for any length. */
export function rememberLength(session: Session): () => void {
  const { messages, toolCalls } = session
  const fields = { ...session }
  const counts = [messages.length, toolCalls.length] as const
  return () => {
    Object.assign(session, fields)
    messages.length = counts[0]
    toolCalls.length = counts[1]
  }
}

/** In place, because a host may hold the array; item by item, because a call takes only so many arguments. */
function refill<T>(list: T[], items: readonly T[]): void {
  list.length = 0
  for (const item of items) list.push(item)
}
