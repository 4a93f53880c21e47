import type { CoreEvent, SegmentFact } from './decision.js'
import type { AcceptedSegment, ParkedSegment, SealedBase, SealedSegment, WaitingSegment } from './session.js'

/** What every event says of its segment. */
export function describe({ from, to, owner, attempts, reason }: SealedSegment): SegmentFact {
  return { from, to, owner, attempt: attempts, reason }
}

/** What a sealed segment keeps whatever becomes of it. */
function baseOf(segment: SealedSegment): SealedBase {
  const { from, to, owner, since, span, gaps, key, attempts, error, reason } = segment
  return { from, to, owner, since, span, gaps, key, attempts, error, reason }
}

export function park(segment: SealedSegment, error: string): ParkedSegment {
  const receipt = segment.state === 'accepted' ? segment.receipt : undefined
  return { ...baseOf(segment), state: 'parked', error, receipt }
}

export function wait(
  segment: SealedSegment,
  changes: Partial<SealedBase> & Pick<WaitingSegment, 'retryAt'>,
): WaitingSegment {
  return { ...baseOf(segment), state: 'waiting', ...changes }
}

export function hold(
  segment: SealedSegment,
  receipt: Pick<AcceptedSegment, 'receipt' | 'askAt' | 'settleBy'>,
): AcceptedSegment {
  return { ...baseOf(segment), state: 'accepted', ...receipt, asks: 0 }
}

export function parked(segment: SealedSegment, error: string): CoreEvent {
  return { type: 'segment:parked', ...describe(segment), error }
}
