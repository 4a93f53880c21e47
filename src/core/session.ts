import type { TurnIds } from './turn-ids.js'

/** A moment at which memory is committed. */
export type Boundary = 'switch' | 'evict' | 'idle' | 'limit' | 'rotate' | 'shutdown' | 'recovery'

/** Why a commit happens: a boundary, or somebody who asked for it. */
export type CommitReason = Boundary | 'manual'

/** Generations `from` to `to`, both included. */
export interface Range {
  readonly from: number
  readonly to: number
}

interface SegmentBase extends Range {
  /** The `agentId` that completed these turns and must commit them; nobody yet if undefined. Once set it never changes. */
  readonly owner: string | undefined
  /** When its first turn was completed, epoch milliseconds. */
  readonly since: number
  /** Milliseconds from its first turn to its last. */
  readonly span: number
  /** Retracted turns inside the range: they count as done. */
  readonly gaps: readonly Range[] | undefined
}

/** Never offered to a provider. Only the newest one, the tail, can still grow. */
export interface OpenSegment extends SegmentBase {
  readonly state: 'open'
  /** How many withdrawn turns lie right before it: if it is withdrawn too, its predecessor is the newest again. */
  readonly gapBefore: number
}

export interface SealedBase extends SegmentBase {
  /** The idempotency key: drawn by the first claim, the same for every attempt. */
  readonly key: string
  /** How often it was claimed. */
  readonly attempts: number
  /** What the last failed attempt said, without message text. */
  readonly error: string | undefined
  /** Why it was last offered. */
  readonly reason: CommitReason
}

/** Offered before, to be offered again: at `retryAt` by the coordinator, or when somebody asks. */
export interface WaitingSegment extends SealedBase {
  readonly state: 'waiting'
  readonly retryAt: number | undefined
}

/** Being committed. At most one segment of a session is. */
export interface ClaimedSegment extends SealedBase {
  readonly state: 'claimed'
  /** The fencing token of this claim: higher than that of every earlier one of the session. */
  readonly token: number
  readonly instance: string
  readonly claimedAt: number
}

/** Taken by the provider, not yet extracted. */
export interface AcceptedSegment extends SealedBase {
  readonly state: 'accepted'
  readonly receipt: string
  /** When to ask what became of it, how often that was done, and when to stop asking. */
  readonly askAt: number
  readonly asks: number
  readonly settleBy: number
}

/** Set aside after the last allowed attempt: kept, visible, never dropped. With a receipt if it was never settled. */
export interface ParkedSegment extends SealedBase {
  readonly state: 'parked'
  readonly receipt: string | undefined
}

export type SealedSegment = WaitingSegment | ClaimedSegment | AcceptedSegment | ParkedSegment
export type Segment = OpenSegment | SealedSegment

/** The open segment that grows. Its end is implied by the session's generation, so a mark touches nothing else. */
export type Tail = Omit<OpenSegment, 'state' | 'to'>

/** A boundary that has come and is not worked off: everything up to `through` is to be committed. */
export interface PendingBoundary {
  readonly reason: CommitReason
  readonly through: number
}

/**
 * All that is known of one session. Generations 1 to `generation` exist; each lies in one of `segments`, in the tail,
 * or is done (committed or retracted). Few fields on purpose: a million dirty sessions have to fit.
 */
export interface SessionState {
  readonly generation: number
  /** The highest fencing token handed out. */
  readonly token: number
  /** Oldest first, without the tail. */
  readonly segments: readonly Segment[]
  readonly tail: Tail | undefined
  /** How many of the newest generations are retracted. */
  readonly retracted: number
  readonly boundary: PendingBoundary | undefined
  /** When a boundary last came by itself (idle, limit). */
  readonly boundedAt: number | undefined
  /** The id under which the conversation went on. */
  readonly rotatedTo: string | undefined
  /** The host's turn ids of what is not committed yet. */
  readonly turnIds: TurnIds | undefined
}

const NO_SEGMENTS: readonly Segment[] = Object.freeze([])

export const emptySession: SessionState = Object.freeze({
  generation: 0,
  token: 0,
  segments: NO_SEGMENTS,
  tail: undefined,
  retracted: 0,
  boundary: undefined,
  boundedAt: undefined,
  rotatedTo: undefined,
  turnIds: undefined,
})

/** The newest generation that was not retracted. */
export function newestKept(state: SessionState): number {
  return state.generation - state.retracted
}

/** The tail as an ordinary segment, with its end written out. */
export function closeTail(state: SessionState, tail: Tail): OpenSegment {
  return {
    state: 'open',
    from: tail.from,
    to: newestKept(state),
    owner: tail.owner,
    since: tail.since,
    span: tail.span,
    gaps: tail.gaps,
    gapBefore: tail.gapBefore,
  }
}

/** Every segment that is not done, oldest first, the tail included. */
export function allSegments(state: SessionState): readonly Segment[] {
  return state.tail === undefined ? state.segments : [...state.segments, closeTail(state, state.tail)]
}

/** Everything up to and including this generation is committed. */
export function watermark(state: SessionState): number {
  const oldest = state.segments[0] ?? state.tail
  return oldest === undefined ? state.generation : oldest.from - 1
}

/** Neither committed nor accepted: dirty, claimed or parked. */
export function hasUncommittedWork(state: SessionState): boolean {
  return state.tail !== undefined || state.segments.some((segment) => segment.state !== 'accepted')
}

/** Nothing is owed to anybody: no uncommitted work and no receipt to settle. */
export function isFinished(state: SessionState): boolean {
  return state.tail === undefined && state.segments.length === 0
}

export function ownsWork(state: SessionState, owner: string): boolean {
  return state.tail?.owner === owner || state.segments.some((segment) => segment.owner === owner)
}

/** How many turns a segment carries: retracted ones do not count. */
export function countTurns(segment: Range & { readonly gaps: readonly Range[] | undefined }): number {
  let count = segment.to - segment.from + 1
  for (const gap of segment.gaps ?? []) count -= gap.to - gap.from + 1
  return count
}

/**
 * The inverse of `allSegments`: the newest open segment is the tail if nothing but withdrawn turns follow it, so that
 * the next turn continues it.
 */
export function splitTail(all: readonly Segment[], newest: number): Pick<SessionState, 'segments' | 'tail'> {
  const last = all.at(-1)
  if (last?.state !== 'open' || last.to !== newest) {
    return { segments: all.length === 0 ? NO_SEGMENTS : all, tail: undefined }
  }
  const { from, owner, since, span, gaps, gapBefore } = last
  return {
    segments: all.length === 1 ? NO_SEGMENTS : all.slice(0, -1),
    tail: { from, owner, since, span, gaps, gapBefore },
  }
}

/** Puts `next` in the place of the segment at `index`, or takes it out. */
export function replaceSegment(state: SessionState, index: number, next: Segment | undefined): SessionState {
  const segments = next === undefined ? state.segments.toSpliced(index, 1) : state.segments.with(index, next)
  return { ...state, segments: segments.length === 0 ? NO_SEGMENTS : segments }
}

/** A boundary is over when nothing it covers is left that could be committed. */
export function finishBoundary(state: SessionState): SessionState {
  const { boundary } = state
  if (boundary === undefined) return state
  const isLeft = (segment: Segment): boolean =>
    segment.from <= boundary.through && segment.state !== 'parked' && segment.state !== 'accepted'
  const tailIsLeft = state.tail !== undefined && state.tail.from <= boundary.through
  return tailIsLeft || state.segments.some(isLeft) ? state : { ...state, boundary: undefined }
}
