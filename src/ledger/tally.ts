import type { SessionState } from '../core/index.js'
import type { LedgerStats } from './ledger.js'

/** Counts what `stats` reports, session by session. */
export function tallySessions(states: Iterable<SessionState>): LedgerStats {
  let dirtySessions = 0
  let uncommittedSince = Infinity
  let unsettled = 0
  let parked = 0
  for (const { segments, tail } of states) {
    let isDirty = tail !== undefined
    if (tail !== undefined) uncommittedSince = Math.min(uncommittedSince, tail.since)
    for (const segment of segments) {
      if (segment.state === 'accepted') unsettled += 1
      else uncommittedSince = Math.min(uncommittedSince, segment.since)
      if (segment.state === 'parked') parked += 1
      if (segment.state !== 'accepted' && segment.state !== 'parked') isDirty = true
    }
    if (isDirty) dirtySessions += 1
  }
  return {
    dirtySessions,
    uncommittedSince: uncommittedSince === Infinity ? undefined : uncommittedSince,
    unsettled,
    parked,
  }
}
