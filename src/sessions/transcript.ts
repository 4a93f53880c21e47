import { TidemarkError } from '../base/errors.js'
import type { RunOutput } from './run-output.js'
import type { Message, Session } from './types.js'

/** The messages a model may see: markers of interrupted turns are for people. */
export function contextMessages(session: Session): Message[] {
  return session.messages.filter(({ interruption }) => interruption === undefined)
}

/**
 * Replaces messages and keeps tool calls at the messages they belong to: those of replaced messages go, those behind
 * move along, those of the output come in between.
 */
export function spliceMessages(session: Session, start: number, removed: number, output: RunOutput): void {
  const shift = output.messages.length - removed
  session.messages.splice(start, removed, ...output.messages)
  if (session.pendingFrom !== null && session.pendingFrom > start) session.pendingFrom += shift
  const before = session.toolCalls.filter(({ messageIndex }) => messageIndex < start)
  const behind = session.toolCalls.filter(({ messageIndex }) => messageIndex >= start + removed)
  session.toolCalls = [
    ...before,
    ...output.toolCalls.map((call) => ({ ...call, messageIndex: start + call.messageIndex })),
    ...behind.map((call) => (shift === 0 ? call : { ...call, messageIndex: call.messageIndex + shift })),
  ]
}

/** Removes the last user message and everything behind it; gives its text. */
export function removeLastTurn(session: Session): string {
  const start = session.messages.findLastIndex(({ role }) => role === 'user')
  const text = session.messages[start]?.content
  if (text === undefined) {
    throw new TidemarkError('NOT_FOUND', `Session ${session.id} has no user message, so there is nothing to undo.`, {
      details: { id: session.id },
    })
  }
  session.messages.length = start
  if (session.pendingFrom !== null) session.pendingFrom = Math.min(session.pendingFrom, start)
  session.toolCalls = session.toolCalls.filter(({ messageIndex }) => messageIndex < start)
  return text
}

/**
 * Puts the pending user message into the transcript, once: a host may have put it there itself. Gives its index, or
 * the length of the transcript when nothing is pending.
 */
export function placePendingMessage(session: Session): number {
  const { pendingUserMessage: content, pendingFrom, pendingAttachments, messages } = session
  if (content === null) return messages.length
  const timestamp = session.pendingStartedAt ?? session.updatedAt
  // A host that set the pending fields by hand left no place; then the time tells an older turn with the same words.
  const isIt = (each: Message) => each.role === 'user' && each.content === content
  for (let at = pendingFrom ?? 0; at < messages.length; at++) {
    const each = messages[at]
    if (each !== undefined && isIt(each) && (pendingFrom !== null || each.timestamp >= timestamp)) return at
  }
  const message: Message = { role: 'user', content, timestamp }
  if (pendingAttachments.length > 0) message.attachments = pendingAttachments
  return messages.push(message) - 1
}

export function clearPending(session: Session): void {
  session.pendingUserMessage = null
  session.pendingAttachments = []
  session.pendingStartedAt = null
  session.pendingFrom = null
  session.activeRunId = null
}

/**
 * Puts a run's output behind the user's message. What a checkpoint had already put there is the same output, shorter or
 * longer: the longer one stays, so that nothing stands there twice. Both are in the order in which they were put out.
 */
export function placeOutput(session: Session, userIndex: number, output: RunOutput): void {
  const contents = output.messages.map(({ content }) => content)
  const repeated: number[] = []
  let next = 0
  for (const [at, { role, content, interruption }] of session.messages.entries()) {
    if (at <= userIndex || role !== 'assistant' || interruption !== undefined) continue
    const same = findSame(contents, content, next)
    if (same === -1) continue
    repeated.push(at)
    // An empty one says nothing about where the output stands.
    if (content === '') continue
    if (content.length > (contents[same]?.length ?? 0)) contents[same] = content
    next = same + 1
  }
  for (const at of repeated.reverse()) spliceMessages(session, at, 1, { messages: [], toolCalls: [] })
  const messages = output.messages.map((message, at) => ({ ...message, content: contents[at] ?? message.content }))
  spliceMessages(session, session.messages.length, 0, { messages, toolCalls: output.toolCalls })
}

/** The same words, or else the first that begin with these or that these begin with. */
function findSame(contents: readonly string[], content: string, from: number): number {
  const exact = contents.indexOf(content, from)
  if (exact !== -1) return exact
  return contents.findIndex(
    (text, at) => at >= from && (text.startsWith(content) || (text !== '' && content.startsWith(text))),
  )
}
