import { allSegments, hasUncommittedWork, type Segment, type SessionState, watermark } from '../core/index.js'
import type { SegmentSnapshot, SessionSnapshot } from './reports.js'

export function snapshotOf(
  sessionId: string,
  state: SessionState,
  live: { readonly inFlight: boolean; readonly agentId: string | undefined },
): SessionSnapshot {
  return {
    sessionId,
    generation: state.generation,
    watermark: watermark(state),
    segments: allSegments(state).map(snapshotSegment),
    inFlight: live.inFlight,
    ...(live.agentId === undefined ? {} : { agentId: live.agentId }),
    ...(state.boundary === undefined ? {} : { boundary: state.boundary.reason }),
    ...(state.rotatedTo === undefined ? {} : { rotatedTo: state.rotatedTo }),
  }
}

function snapshotSegment(segment: Segment): SegmentSnapshot {
  const { from, to, owner } = segment
  if (segment.state === 'open') return { from, to, owner, state: 'dirty', attempts: 0 }
  return {
    from,
    to,
    owner,
    attempts: segment.attempts,
    state: segment.state === 'waiting' ? 'dirty' : segment.state,
    ...(segment.error === undefined ? {} : { error: segment.error }),
  }
}

export interface SessionFilter {
  /** Only sessions with (or without) uncommitted work. */
  readonly uncommitted?: boolean
  /** Only sessions with (or without) parked segments. */
  readonly parked?: boolean
  /** Only sessions with (or without) accepted segments that have not settled. */
  readonly unsettled?: boolean
}

export function matches(state: SessionState, filter: SessionFilter): boolean {
  const has = (wanted: boolean | undefined, found: boolean): boolean => wanted === undefined || wanted === found
  const hasSegment = (wanted: Segment['state']): boolean => state.segments.some((segment) => segment.state === wanted)
  return (
    has(filter.uncommitted, hasUncommittedWork(state)) &&
    has(filter.parked, hasSegment('parked')) &&
    has(filter.unsettled, hasSegment('accepted'))
  )
}
