import { allSegments, countTurns, finishBoundary, type Segment, type SessionState } from './session.js'

/** Boundaries that come by themselves, for conversations that never end (B6). Each is off while undefined. */
export interface BoundaryPolicy {
  readonly idleMs: number | undefined
  readonly maxTurns: number | undefined
  readonly maxAgeMs: number | undefined
  readonly minIntervalMs: number
}

/** Sets the boundary that has become due by itself, if one has. */
export function applyBoundaries(state: SessionState, policy: BoundaryPolicy, at: number): SessionState {
  const reason = dueReason(state, policy, at)
  if (reason === undefined) return state
  return finishBoundary({ ...state, boundary: { reason, through: state.generation }, boundedAt: at })
}

function dueReason(state: SessionState, policy: BoundaryPolicy, at: number): 'idle' | 'limit' | undefined {
  const waiting = hasPolicy(policy) ? unbounded(state) : undefined
  if (waiting === undefined || at < earliest(state, policy)) return undefined
  if (policy.maxTurns !== undefined && waiting.turns >= policy.maxTurns) return 'limit'
  if (policy.maxAgeMs !== undefined && at >= waiting.since + policy.maxAgeMs) return 'limit'
  if (policy.idleMs !== undefined && at >= waiting.lastAt + policy.idleMs) return 'idle'
  return undefined
}

/** The dirty work that no boundary covers yet and nobody retries. Parked work feeds no boundary. */
function unbounded(state: SessionState): { turns: number; since: number; lastAt: number } | undefined {
  const through = state.boundary?.through ?? 0
  const isUnbounded = (segment: Segment): boolean =>
    segment.from > through &&
    (segment.state === 'open' || (segment.state === 'waiting' && segment.retryAt === undefined))
  const dirty = allSegments(state).filter(isUnbounded)
  const [oldest] = dirty
  const newest = dirty.at(-1)
  if (oldest === undefined || newest === undefined) return undefined
  const turns = dirty.reduce((sum, segment) => sum + countTurns(segment), 0)
  return { turns, since: oldest.since, lastAt: newest.since + newest.span }
}

function hasPolicy(policy: BoundaryPolicy): boolean {
  return policy.idleMs !== undefined || policy.maxTurns !== undefined || policy.maxAgeMs !== undefined
}

function earliest(state: SessionState, policy: BoundaryPolicy): number {
  return state.boundedAt === undefined ? -Infinity : state.boundedAt + policy.minIntervalMs
}

/** When the session next needs attention by itself: a retry, a question about a receipt, a boundary. */
export function nextWake(state: SessionState, policy: BoundaryPolicy): number | undefined {
  let wake = Infinity
  for (const segment of state.segments) wake = Math.min(wake, wakeOf(segment))
  const waiting = hasPolicy(policy) ? unbounded(state) : undefined
  if (waiting !== undefined) {
    let due = Infinity
    if (policy.maxTurns !== undefined && waiting.turns >= policy.maxTurns) due = waiting.lastAt
    if (policy.maxAgeMs !== undefined) due = Math.min(due, waiting.since + policy.maxAgeMs)
    if (policy.idleMs !== undefined) due = Math.min(due, waiting.lastAt + policy.idleMs)
    wake = Math.min(wake, Math.max(due, earliest(state, policy)))
  }
  return wake === Infinity ? undefined : wake
}

function wakeOf(segment: Segment): number {
  switch (segment.state) {
    case 'waiting':
      return segment.retryAt ?? Infinity
    case 'accepted':
      return Math.min(segment.askAt, segment.settleBy)
    case 'open':
    case 'claimed':
    case 'parked':
      return Infinity
    default:
      return segment satisfies never
  }
}
