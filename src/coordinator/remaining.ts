import { allSegments, type Range, type Segment, type SessionState } from '../core/index.js'
import type { RemainingReason } from './reports.js'

export interface Remaining extends Range {
  readonly reason: RemainingReason
}

/** What of a session is not committed, and why. */
export function remainingOf(
  state: SessionState,
  look: {
    readonly isReachable: (owner: string | undefined) => boolean
    /** Whether the segment that begins here has a call under way, or had one that was cut short. */
    readonly isInFlight: (from: number) => boolean
  },
): Remaining[] {
  const reasonOf = (segment: Segment): RemainingReason | undefined => {
    if (segment.state === 'accepted') return undefined
    if (segment.state === 'parked') return 'parked'
    if (segment.state === 'claimed' || look.isInFlight(segment.from)) return 'in-flight'
    if (!look.isReachable(segment.owner)) return 'unowned'
    return segment.state === 'waiting' && segment.attempts > 0 ? 'failing' : 'not-started'
  }
  return allSegments(state).flatMap((segment) => {
    const reason = reasonOf(segment)
    return reason === undefined ? [] : [{ from: segment.from, to: segment.to, reason }]
  })
}
