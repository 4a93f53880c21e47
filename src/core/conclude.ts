import { answer, type CoreEvent, type Decision } from './decision.js'
import { type RetryPolicy, retryDelay } from './retry.js'
import { describe, hold, park, parked, wait } from './segment.js'
import {
  type ClaimedSegment,
  finishBoundary,
  replaceSegment,
  type SealedSegment,
  type SessionState,
} from './session.js'
import { dropTurnIds } from './turn-ids.js'

/** Names one claim: an answer counts only while it is the current one. */
export interface ClaimName {
  readonly key: string
  readonly token: number
}

export interface Success {
  /** False if the range was no longer open: another attempt had cleared it, or it was discarded. */
  readonly counted: boolean
  /** A newer attempt at the same range that has become needless. */
  readonly needless: ClaimName | undefined
}

/**
 * The provider has the range. It counts by its key, whoever reports it and however late, once (C13); it clears exactly
 * that range (C4).
 */
export function succeed(state: SessionState, claim: ClaimName): Decision<Success> {
  const index = findSealed(state, (segment) => segment.key === claim.key)
  const segment = sealedAt(state, index)
  if (segment === undefined) return answer(state, { counted: false, needless: undefined })
  const late = !(segment.state === 'claimed' && segment.token === claim.token)
  const needless = late && segment.state === 'claimed' ? { key: segment.key, token: segment.token } : undefined
  return {
    ...clear(state, index, segment),
    result: { counted: true, needless },
    events: [{ type: 'commit:succeeded', ...describe(segment), late }],
  }
}

/** Takes a finished segment out, with its text and its turn ids. */
export function clear(
  state: SessionState,
  index: number,
  segment: SealedSegment,
): Pick<Decision<never>, 'state' | 'drop'> {
  const { from, to } = segment
  const rest = replaceSegment(state, index, undefined)
  return {
    state: finishBoundary({ ...rest, turnIds: dropTurnIds(rest.turnIds, from, to) }),
    drop: [{ from, to }],
  }
}

export interface Acceptance extends ClaimName {
  readonly receipt: string
  readonly askAt: number
  readonly settleBy: number
}

/** The provider took the range but has not finished: its text stays until the receipt settles (C11). */
export function accept(state: SessionState, acceptance: Acceptance): Decision<boolean> {
  const index = findClaim(state, acceptance)
  const segment = sealedAt(state, index)
  if (segment === undefined) return answer(state, false)
  const { receipt, askAt, settleBy } = acceptance
  const next = replaceSegment(state, index, hold(segment, { receipt, askAt, settleBy }))
  return { state: finishBoundary(next), result: true, events: [{ type: 'commit:accepted', ...describe(segment) }] }
}

export interface Failure extends ClaimName {
  readonly at: number
  readonly error: string
  readonly retryable: boolean
  readonly retry: RetryPolicy
  /** A random number from 0 to 1, for the jitter. */
  readonly chance: number
}

export type FailureResult = 'waiting' | 'parked' | 'ignored'

/** The attempt failed: only the attempt count and the error change (C5), until the last allowed one parks it (C12). */
export function fail(state: SessionState, failure: Failure): Decision<FailureResult> {
  const index = findClaim(state, failure)
  const segment = sealedAt(state, index)
  if (segment === undefined) return answer(state, 'ignored')
  return failSegment(state, index, segment, failure)
}

/** Shared by a failed attempt and a failed settlement: wait for the next attempt, or park. */
export function failSegment(
  state: SessionState,
  index: number,
  segment: SealedSegment,
  failure: Omit<Failure, 'token'>,
): Decision<FailureResult> {
  const { error, at, retry } = failure
  const gaveUp = !failure.retryable || segment.attempts >= retry.attempts
  // Only what a boundary began is tried again behind the caller's back.
  const isCovered = state.boundary !== undefined && segment.from <= state.boundary.through
  const retryAt = gaveUp || !isCovered ? undefined : at + retryDelay(segment.attempts, retry, failure.chance)
  const failed: CoreEvent = { type: 'commit:failed', ...describe(segment), error, retryAt }
  if (gaveUp) {
    const next = replaceSegment(state, index, { ...park(segment, error), key: failure.key, receipt: undefined })
    return { state: finishBoundary(next), result: 'parked', events: [failed, parked(segment, error)] }
  }
  const next = replaceSegment(state, index, wait(segment, { key: failure.key, error, retryAt }))
  return { state: next, result: 'waiting', events: [failed] }
}

/** Gives a claim back as if it had never been made: at shutdown, or when its owner cannot be called (C12). */
export function release(state: SessionState, claim: ClaimName): Decision<boolean> {
  const index = findClaim(state, claim)
  const segment = sealedAt(state, index)
  if (segment === undefined) return answer(state, false)
  const next = replaceSegment(state, index, wait(segment, { attempts: segment.attempts - 1, retryAt: undefined }))
  return { state: next, result: true, events: [] }
}

/** Gives back what this instance has claimed, if anything: nobody waits for its calls any more (D7). */
export function releaseClaim(state: SessionState, instance: string): Decision<boolean> {
  const index = findSealed(state, (segment) => segment.state === 'claimed' && segment.instance === instance)
  const segment = sealedAt(state, index)
  return segment?.state === 'claimed' ? release(state, segment) : answer(state, false)
}

/** Records who takes over a claimed segment that had no owner, before the provider is called (C2). */
export function adopt(state: SessionState, claim: ClaimName, owner: string): Decision<boolean> {
  const index = findClaim(state, claim)
  const segment = sealedAt(state, index)
  if (segment === undefined || segment.owner !== undefined) return answer(state, false)
  return { state: replaceSegment(state, index, { ...segment, owner }), result: true, events: [] }
}

export function findSealed(state: SessionState, matches: (segment: SealedSegment) => boolean): number {
  return state.segments.findIndex((segment) => segment.state !== 'open' && matches(segment))
}

function findClaim(state: SessionState, claim: ClaimName): number {
  return findSealed(state, (segment) => isClaim(segment, claim))
}

function isClaim(segment: SealedSegment, claim: ClaimName): segment is ClaimedSegment {
  return segment.state === 'claimed' && segment.token === claim.token && segment.key === claim.key
}

function sealedAt(state: SessionState, index: number): SealedSegment | undefined {
  const segment = state.segments[index]
  return segment === undefined || segment.state === 'open' ? undefined : segment
}
