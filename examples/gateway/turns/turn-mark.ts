import type { MemoryAgent, MemoryLifecycle } from 'tidemark'
import type { Message, Session } from 'tidemark/sessions'

/**
 * Beside the answer stands which run gave it and which generation its turn has in memory. So an undo knows what to
 * retract, and a crash between the transcript and the mark is found: see `markMissing`.
 */
export interface TurnMark {
  readonly kind: 'turn'
  readonly runId: string
  readonly generation: number
}

export function turnMarkOf(message: Message): TurnMark | undefined {
  return message.attachments?.find(isTurnMark)
}

function isTurnMark(attachment: unknown): attachment is TurnMark {
  return (attachment as { kind?: unknown } | null)?.kind === 'turn'
}

/** The last turn of a transcript that was completed. */
export function lastTurn(
  session: Session,
): { mark: TurnMark; messages: { role: string; content: string }[] } | undefined {
  const end = session.messages.findLastIndex((message) => turnMarkOf(message) !== undefined)
  const mark = session.messages[end] && turnMarkOf(session.messages[end])
  if (mark === undefined) return undefined
  const start = session.messages.findLastIndex(({ role }, at) => role === 'user' && at < end)
  return { mark, messages: forMemory(session.messages.slice(Math.max(start, 0), end + 1)) }
}

/** What memory learns from: what was said. Recalled facts and tool cards are left out. */
export function forMemory(messages: readonly { role: string; content: string }[]): { role: string; content: string }[] {
  return messages.filter(({ content }) => content !== '').map(({ role, content }) => ({ role, content }))
}

/** Turns of a session are marked one after the other, so the next number is known before the mark. */
export async function nextGeneration(lifecycle: MemoryLifecycle, sessionId: string): Promise<number> {
  return ((await lifecycle.inspect(sessionId))?.generation ?? 0) + 1
}

/**
 * A process that died after it had saved an answer and before it had marked the turn left a transcript one turn ahead
 * of the ledger. That turn is marked now; everything else is left as it is. Gives whether there was one.
 */
export async function markMissing(lifecycle: MemoryLifecycle, agent: MemoryAgent, session: Session): Promise<boolean> {
  const last = lastTurn(session)
  if (last === undefined || last.mark.generation !== (await nextGeneration(lifecycle, session.id))) return false
  await lifecycle.markTurnCompleted(session.id, { agent, messages: last.messages, turnId: last.mark.runId })
  return true
}
