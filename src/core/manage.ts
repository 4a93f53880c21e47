import { answer, type Decision } from './decision.js'
import { hold, wait } from './segment.js'
import {
  allSegments,
  type CommitReason,
  emptySession,
  finishBoundary,
  isFinished,
  type Range,
  type Segment,
  type SessionState,
} from './session.js'
import { coverThrough } from './settle.js'

/** A boundary has come: everything recorded so far, or up to a generation, is to be committed (B2, B3). */
export function requestBoundary(state: SessionState, reason: CommitReason, upTo = Infinity): Decision<boolean> {
  const through = Math.max(Math.min(upTo, state.generation), state.boundary?.through ?? 0)
  if (state.boundary?.reason === reason && state.boundary.through === through) return answer(state, true)
  const next = finishBoundary({ ...state, boundary: { reason, through } })
  return next.boundary === undefined ? answer(state, false) : { state: next, result: true, events: [] }
}

/** The conversation goes on under another id (B7). Repeating it changes nothing; going elsewhere is refused. */
export function rotate(state: SessionState, newId: string): Decision<{ readonly conflict: string | undefined }> {
  if (state.rotatedTo === newId) return answer(state, { conflict: undefined })
  if (state.rotatedTo !== undefined) return answer(state, { conflict: state.rotatedTo })
  const next: SessionState = { ...state, rotatedTo: newId, boundary: { reason: 'rotate', through: state.generation } }
  return {
    state: finishBoundary(next),
    result: { conflict: undefined },
    events: [{ type: 'session:rotated', rotatedTo: newId }],
  }
}

/** Parked segments get their attempts back; an unsettled one is asked about again before anything is sent twice. */
export function unpark(
  state: SessionState,
  request: { readonly at: number; readonly settleBy: number },
): Decision<number> {
  let count = 0
  let through = 0
  const segments = state.segments.map((segment): Segment => {
    if (segment.state !== 'parked') return segment
    count += 1
    through = segment.to
    const { receipt } = segment
    if (receipt === undefined) return wait(segment, { attempts: 0, retryAt: request.at })
    return hold(segment, { receipt, askAt: request.at, settleBy: request.settleBy })
  })
  if (count === 0) return answer(state, 0)
  return { state: finishBoundary(coverThrough({ ...state, segments }, through)), result: count, events: [] }
}

/**
 * Lets go of a session (B8). What is owed to a provider is thrown away only by force. The numbers stay, so that neither
 * a generation nor a fencing token is ever used twice.
 */
export function discard(state: SessionState, force: boolean): Decision<boolean> {
  if (!isFinished(state) && !force) return answer(state, false)
  if (state.generation === 0) return answer(state, true)
  const thrownAway: readonly Range[] = allSegments(state).map(({ from, to }) => ({ from, to }))
  return {
    state: { ...emptySession, generation: state.generation, token: state.token },
    result: true,
    events: [{ type: 'session:discarded', thrownAway }],
    drop: thrownAway,
    forget: true,
  }
}
