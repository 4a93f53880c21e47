import type { CoreEvent } from './decision.js'
import type { ParkedSegment, Range, SealedSegment, WaitingSegment } from './session.js'

/** What every event says of its segment. */
export function describe(
  segment: SealedSegment,
): Range & { readonly owner: string | undefined; readonly attempt: number } {
  return { from: segment.from, to: segment.to, owner: segment.owner, attempt: segment.attempts }
}

export function park(segment: SealedSegment, error: string): ParkedSegment {
  const { from, to, owner, since, span, gaps, key, attempts } = segment
  const receipt = segment.state === 'accepted' ? segment.receipt : undefined
  return { state: 'parked', from, to, owner, since, span, gaps, key, attempts, error, receipt }
}

export function wait(
  segment: SealedSegment,
  changes: Partial<WaitingSegment> & { readonly retryAt: number | undefined },
): WaitingSegment {
  const { from, to, owner, since, span, gaps, key, attempts, error } = segment
  return { state: 'waiting', from, to, owner, since, span, gaps, key, attempts, error, ...changes }
}

export function parked(segment: SealedSegment, error: string): CoreEvent {
  return { type: 'segment:parked', ...describe(segment), error }
}
