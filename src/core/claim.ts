import { answer, type CoreEvent, type Decision } from './decision.js'
import { describe, park, parked, wait } from './segment.js'
import {
  allSegments,
  type ClaimedSegment,
  type CommitReason,
  finishBoundary,
  newestKept,
  type ParkedSegment,
  type Range,
  type Segment,
  type SessionState,
  splitTail,
} from './session.js'

export interface ClaimRequest {
  readonly instance: string
  /** Drawn anew for each request; used only if the segment has no key yet. */
  readonly key: string
  readonly at: number
  /** `boundary` commits what a pending boundary covers, under its reason; `all` whatever there is, under `reason`. */
  readonly scope: 'boundary' | 'all'
  readonly reason: CommitReason
  readonly attemptsAllowed: number
  readonly order: 'available' | 'strict'
  /** Who takes a segment that nobody owns yet. */
  readonly adopter: string | undefined
  /** Can this owner (nobody: `undefined`) be called now, live or revived? */
  readonly isReachable: (owner: string | undefined) => boolean
  /** Is the call behind this claim still under way? The claim of a dead process, or one without a call, is free (R2, C14). */
  readonly isUnderWay: (claim: ClaimedSegment) => boolean
  /** Segments (by their first generation) this caller has tried already. */
  readonly tried: ReadonlySet<number>
  /** Try a segment although the coordinator would still wait: somebody asked for it, or the process ends. */
  readonly impatient: boolean
}

export type ClaimResult =
  | { readonly status: 'claimed'; readonly segment: ClaimedSegment }
  | { readonly status: 'clean' }
  | { readonly status: 'busy' }
  | { readonly status: 'waiting'; readonly until: number; readonly segment: Range }
  | { readonly status: 'unowned'; readonly segment: Segment }
  | { readonly status: 'parked'; readonly segment: ParkedSegment }

const CRASHED = 'the process ended during its last allowed attempt'

/** Claims the oldest available segment (C1, C2, C12), or says why there is none. */
export function claimSegment(state: SessionState, request: ClaimRequest): Decision<ClaimResult> {
  const { order } = request
  const boundary = request.scope === 'boundary' ? (state.boundary ?? { reason: request.reason, through: 0 }) : undefined
  const through = boundary?.through ?? state.generation
  const reason = boundary?.reason ?? request.reason
  const found = allSegments(state)
  // Anywhere, not only before the segment we would take: one commit at a time (C7).
  if (found.some((segment) => segment.state === 'claimed' && request.isUnderWay(segment))) {
    return answer(state, { status: 'busy' })
  }
  const { all, events, isFreed } = freeClaims(found, request)
  const conclude = (result: ClaimResult): Decision<ClaimResult> =>
    isFreed
      ? { state: finishBoundary({ ...state, ...splitTail(all, newestKept(state)) }), result, events }
      : answer(state, result)
  const passedOver: { unowned?: ClaimResult; parked?: ClaimResult } = {}

  for (const [index, segment] of all.entries()) {
    if (segment.from > through) break
    const blocking = obstacle(segment, request)
    if (blocking !== undefined) {
      if (blocking.status === 'waiting' || order === 'strict') return conclude(blocking)
      if (blocking.status === 'unowned' || blocking.status === 'parked') passedOver[blocking.status] ??= blocking
      continue
    }
    if (request.tried.has(segment.from)) {
      if (order === 'strict') return conclude({ status: 'waiting', until: request.at, segment })
      continue
    }
    const claimed = seal(segment, state.token + 1, reason, request)
    all[index] = claimed
    events.push({ type: 'commit:started', ...describe(claimed) })
    return {
      state: finishBoundary({ ...state, ...splitTail(all, newestKept(state)), token: claimed.token }),
      result: { status: 'claimed', segment: claimed },
      events,
    }
  }
  // An owner may come by itself; for what is parked somebody has to ask.
  return conclude(passedOver.unowned ?? passedOver.parked ?? { status: 'clean' })
}

/**
 * Nobody is behind these claims any more. Attempts are counted by the claim, so a segment that kills its process again
 * and again is set aside in the end.
 */
function freeClaims(
  found: readonly Segment[],
  request: ClaimRequest,
): { readonly all: Segment[]; readonly events: CoreEvent[]; readonly isFreed: boolean } {
  const events: CoreEvent[] = []
  let isFreed = false
  const all = found.map((segment) => {
    if (segment.state !== 'claimed') return segment
    isFreed = true
    if (segment.attempts < request.attemptsAllowed) return wait(segment, { retryAt: undefined })
    const error = segment.error ?? CRASHED
    events.push(parked(segment, error))
    return park(segment, error)
  })
  return { all, events, isFreed }
}

/** What keeps a segment from being claimed. A waiting one blocks its session; the others do in strict order only. */
function obstacle(segment: Segment, request: ClaimRequest): ClaimResult | undefined {
  switch (segment.state) {
    case 'accepted':
      return { status: 'busy' }
    case 'parked':
      return { status: 'parked', segment }
    case 'waiting':
      if (!request.impatient && segment.retryAt !== undefined && segment.retryAt > request.at) {
        return { status: 'waiting', until: segment.retryAt, segment }
      }
      break
    case 'open':
    case 'claimed':
      break
    default:
      segment satisfies never
  }
  const owner = segment.owner ?? request.adopter
  return request.isReachable(owner) ? undefined : { status: 'unowned', segment }
}

function seal(segment: Segment, token: number, reason: CommitReason, request: ClaimRequest): ClaimedSegment {
  const isOpen = segment.state === 'open'
  return {
    state: 'claimed',
    from: segment.from,
    to: segment.to,
    owner: segment.owner ?? request.adopter,
    since: segment.since,
    span: segment.span,
    gaps: segment.gaps,
    key: isOpen ? request.key : segment.key,
    attempts: (isOpen ? 0 : segment.attempts) + 1,
    error: isOpen ? undefined : segment.error,
    token,
    instance: request.instance,
    reason,
    claimedAt: request.at,
  }
}
