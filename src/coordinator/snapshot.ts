import { allSegments, type Segment, type SessionState, watermark } from '../core/index.js'
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
    ...{ from, to, owner, attempts: segment.attempts },
    state: segment.state === 'waiting' ? 'dirty' : segment.state,
    ...(segment.error === undefined ? {} : { error: segment.error }),
  }
}
