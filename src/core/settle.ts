import { clear, failSegment, type Failure, findSealed } from './conclude.js'
import { answer, type CoreEvent, type Decision } from './decision.js'
import { describe, park, parked } from './segment.js'
import { type AcceptedSegment, replaceSegment, type SessionState } from './session.js'

/** Names one accepted segment: an answer about an older receipt counts for nothing. */
export interface ReceiptName {
  readonly key: string
  readonly receipt: string
}

/** Extracted: the range is committed. */
export function settleCommitted(state: SessionState, name: ReceiptName): Decision<boolean> {
  const [index, segment] = findAccepted(state, name)
  if (segment === undefined) return answer(state, false)
  return {
    ...clear(state, index, segment),
    result: true,
    events: [{ type: 'receipt:settled', ...describe(segment) }],
  }
}

/** Not known yet: ask again at `askAt`, or, when the settle deadline has passed, park it with its receipt. */
export function settlePending(
  state: SessionState,
  name: ReceiptName,
  ask: { readonly at: number; readonly askAt: number; readonly error: string },
): Decision<'pending' | 'parked' | 'ignored'> {
  const [index, segment] = findAccepted(state, name)
  if (segment === undefined) return answer(state, 'ignored')
  if (ask.at >= segment.settleBy) {
    const next = replaceSegment(state, index, park(segment, ask.error))
    return { state: next, result: 'parked', events: [parked(segment, ask.error)] }
  }
  const asked: AcceptedSegment = {
    ...segment,
    asks: segment.asks + 1,
    askAt: Math.min(ask.askAt, segment.settleBy),
  }
  return { state: replaceSegment(state, index, asked), result: 'pending', events: [] }
}

/** Certainly not extracted: the range is dirty again under the retry policy, with a new key (C10, C11). */
export function settleFailed(
  state: SessionState,
  name: ReceiptName,
  failure: Omit<Failure, 'token' | 'key'> & { readonly newKey: string },
): Decision<'waiting' | 'parked' | 'ignored'> {
  const [index, segment] = findAccepted(state, name)
  if (segment === undefined) return answer(state, 'ignored')
  const covered = coverThrough(state, segment.to)
  const decision = failSegment(covered, index, segment, { ...failure, key: failure.newKey })
  const event: CoreEvent = { type: 'receipt:failed', ...describe(segment), error: failure.error }
  return { ...decision, events: [event, ...decision.events.filter((other) => other.type === 'segment:parked')] }
}

/** Work that the coordinator itself has to bring to an end counts as part of a boundary. */
export function coverThrough(state: SessionState, through: number): SessionState {
  const { boundary } = state
  if (boundary !== undefined && boundary.through >= through) return state
  return { ...state, boundary: { reason: boundary?.reason ?? 'recovery', through } }
}

function findAccepted(state: SessionState, name: ReceiptName): [number, AcceptedSegment | undefined] {
  const index = findSealed(
    state,
    (segment) => segment.state === 'accepted' && segment.key === name.key && segment.receipt === name.receipt,
  )
  const segment = state.segments[index]
  return [index, segment?.state === 'accepted' ? segment : undefined]
}
