import { answer, type Decision } from './decision.js'
import {
  allSegments,
  countTurns,
  finishBoundary,
  newestKept,
  type OpenSegment,
  type Range,
  type Segment,
  type SessionState,
  splitTail,
} from './session.js'
import { dropTurnIds } from './turn-ids.js'

export interface Retraction {
  /** How many turns were withdrawn. */
  readonly retracted: number
  /**
   * How many of the named turns had been offered to a provider before, and stay. Numbers that were withdrawn earlier do not
   * count, as long as a turn after them is uncommitted: beyond that nobody remembers them.
   */
  readonly offered: number
}

/** Withdraws the turns from `from` on that no provider was ever offered (L13). Their numbers are not used again. */
export function retractTurns(state: SessionState, from: number): Decision<Retraction> {
  const last = newestKept(state)
  const named = last - Math.max(from, 1) + 1
  if (named <= 0) return answer(state, { retracted: 0, offered: 0 })

  const kept: Segment[] = []
  const drop: Range[] = []
  // What is withdrawn now, together with what was withdrawn right before it.
  const withdrawn: Range[] = []
  let retracted = 0
  let withdrawnEarlier = 0
  for (const segment of allSegments(state)) {
    withdrawnEarlier += countWithdrawn(segment, from)
    if (segment.state !== 'open' || segment.to < from) {
      kept.push(segment)
      continue
    }
    const rest = cutSegment(segment, from)
    drop.push({ from: rest === undefined ? segment.from : rest.to + 1, to: segment.to })
    withdrawn.push({ from: rest === undefined ? segment.from - segment.gapBefore : rest.to + 1, to: segment.to })
    retracted += countTurns(segment) - (rest === undefined ? 0 : countTurns(rest))
    if (rest !== undefined) kept.push(rest)
  }
  // A gap before `from` may be part of what is dropped: it is neither withdrawn now nor offered.
  const dropped = drop.reduce((sum, range) => sum + range.to - Math.max(range.from, from, 1) + 1, 0)
  const result = { retracted, offered: named - dropped - withdrawnEarlier }
  if (drop.length === 0) return answer(state, result)

  const newest = newestOutside(withdrawn, last)
  const next: SessionState = {
    ...state,
    ...splitTail(kept, newest),
    retracted: state.generation - newest,
    turnIds: drop.reduce((ids, range) => dropTurnIds(ids, range.from, range.to), state.turnIds),
  }
  return { state: finishBoundary(next), result, events: [], drop }
}

/** Named turns that were withdrawn before: inside a segment that stays, or right before one that goes. */
function countWithdrawn(segment: Segment, from: number): number {
  const gaps =
    segment.state === 'open' ? [{ from: segment.from - segment.gapBefore, to: segment.from - 1 }] : (segment.gaps ?? [])
  return gaps.reduce((sum, gap) => sum + Math.max(0, gap.to - Math.max(gap.from, from, 1) + 1), 0)
}

/** What is left of an open segment before `from`; it never ends in a gap. */
function cutSegment(segment: OpenSegment, from: number): OpenSegment | undefined {
  let to = from - 1
  const gap = segment.gaps?.find((candidate) => candidate.from <= to && to <= candidate.to)
  if (gap !== undefined) to = gap.from - 1
  if (to < segment.from) return undefined
  const gaps = segment.gaps?.filter((candidate) => candidate.to < to)
  return { ...segment, to, gaps: gaps === undefined || gaps.length === 0 ? undefined : gaps }
}

function newestOutside(withdrawn: readonly Range[], last: number): number {
  let newest = last
  for (const range of withdrawn.toReversed()) if (range.to === newest) newest = range.from - 1
  return newest
}
