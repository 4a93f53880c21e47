import type { SqlRow, SqlValue } from '../../base/sqlite.js'
import {
  type CommitReason,
  emptySession,
  type PendingBoundary,
  type Range,
  type Segment,
  type SessionState,
  type Tail,
  type TurnIds,
} from '../../core/index.js'
import { hashText, mix } from './checksum.js'
import { rowDamaged } from './failure.js'

/** A session as the ledger keeps it in memory: its state, and where its rows are. */
export interface SessionRecord {
  readonly sessionId: string
  /** 0 until its row exists. */
  readonly id: number
  readonly state: SessionState
  /** The newest outbox row of the tail; 0 if none. */
  readonly tailHead: number
  /** The newest outbox rows of the other segments, by their first generation. */
  readonly heads: ReadonlyMap<number, number> | undefined
}

/** The newest rows of the chains that hold turns of this range, newest chain first. */
export function findHeads(record: Omit<SessionRecord, 'sessionId' | 'id'>, from: number, to: number): number[] {
  const { state, tailHead, heads } = record
  const found = state.segments
    .filter((segment) => segment.from <= to && from <= segment.to)
    .map((segment) => heads?.get(segment.from) ?? 0)
  if (state.tail !== undefined && state.tail.from <= to) found.push(tailHead)
  return found.filter((head) => head !== 0).reverse()
}

/** The order of the columns in INSERT and UPDATE. */
export const SESSION_COLUMNS = Object.freeze([
  ...['session_id', 'generation', 'tail_span', 'tail_head', 'checksum', 'token', 'segments', 'waiting_since'],
  ...['retracted', 'boundary_reason', 'boundary_through', 'bounded_at', 'rotated_to', 'tail_from', 'tail_owner'],
  ...['tail_since', 'tail_gaps', 'tail_gap_before'],
])

/** What a mark changes: three numbers and the checksum. */
const MARK_COLUMNS = Object.freeze(['generation', 'tail_span', 'tail_head', 'checksum'])

export const UPDATE_MARK = `UPDATE sessions SET ${MARK_COLUMNS.join(' = ?, ')} = ? WHERE id = ?`

/** When the oldest work that is not done began; the order in which sessions are taken up again. */
export function waitingSince(state: SessionState): number | undefined {
  return (state.segments[0] ?? state.tail)?.since
}

export function encodeGaps(gaps: readonly Range[] | undefined): string | undefined {
  return gaps === undefined ? undefined : JSON.stringify(gaps.map(({ from, to }) => [from, to]))
}

export function decodeGaps(gaps: string | undefined): readonly Range[] | undefined {
  if (gaps === undefined) return undefined
  try {
    return (JSON.parse(gaps) as [number, number][]).map(([from, to]) => ({ from, to }))
  } catch {
    // What it was read from cannot be right either: this comes before the checksum of the row.
    throw rowDamaged('a list of retracted turns')
  }
}

/** The hash of everything in a session's row that a mark does not change. */
export function hashConstants(sessionId: string, id: number, state: SessionState): number {
  const { tail, boundary } = state
  const texts = [sessionId, boundary?.reason, state.rotatedTo, tail?.owner, encodeGaps(tail?.gaps)]
  let hash = hashText(JSON.stringify(texts.map((text) => text ?? null)))
  hash = mix(mix(mix(hash, id), state.token), state.segments.length)
  hash = mix(mix(mix(hash, waitingSince(state)), state.retracted), boundary?.through)
  return mix(mix(mix(mix(hash, state.boundedAt), tail?.from), tail?.since), tail?.gapBefore)
}

export function checkSession(constants: number, state: SessionState, tailHead: number): number {
  return mix(mix(mix(constants, state.generation), state.tail?.span), tailHead)
}

/** The values of `UPDATE_MARK`. */
export function encodeMark(id: number, constants: number, state: SessionState, tailHead: number): SqlValue[] {
  return [state.generation, state.tail?.span ?? null, tailHead, checkSession(constants, state, tailHead), id]
}

export function encodeSession(sessionId: string, state: SessionState, head: number, checksum: number): SqlValue[] {
  const { tail, boundary } = state
  return [
    ...[sessionId, state.generation, tail?.span ?? null, head, checksum, state.token, state.segments.length],
    ...[waitingSince(state) ?? null, state.retracted, boundary?.reason ?? null, boundary?.through ?? null],
    ...[state.boundedAt ?? null, state.rotatedTo ?? null, tail?.from ?? null, tail?.owner ?? null],
    ...[tail?.since ?? null, encodeGaps(tail?.gaps) ?? null, tail?.gapBefore ?? null],
  ]
}

export interface SessionParts {
  readonly segments: readonly Segment[]
  readonly heads: ReadonlyMap<number, number> | undefined
  readonly turnIds: TurnIds | undefined
}

/** The row of a session with its segments and turn ids. Throws `CORRUPT` if it is not what was written. */
export function decodeSession(row: SqlRow, parts: SessionParts): SessionRecord {
  const sessionId = row['session_id'] as string
  const id = row['id'] as number
  const tailHead = row['tail_head'] as number
  const numbers = {
    generation: row['generation'] as number,
    token: row['token'] as number,
    retracted: row['retracted'] as number,
  }
  const state: SessionState = {
    ...emptySession,
    ...numbers,
    ...(parts.segments.length === 0 ? {} : { segments: parts.segments }),
    tail: decodeTail(row),
    boundary: decodeBoundary(row),
    boundedAt: optionalNumber(row['bounded_at']),
    rotatedTo: optionalText(row['rotated_to']),
    turnIds: parts.turnIds,
  }
  const expected = checkSession(hashConstants(sessionId, id, state), state, tailHead)
  if (row['checksum'] !== expected || row['segments'] !== parts.segments.length) {
    throw rowDamaged(`the session in row ${id}`)
  }
  return { sessionId, id, state, tailHead, heads: parts.heads }
}

function decodeTail(row: SqlRow): Tail | undefined {
  if (row['tail_from'] === null) return undefined
  return {
    from: row['tail_from'] as number,
    owner: optionalText(row['tail_owner']),
    since: row['tail_since'] as number,
    span: row['tail_span'] as number,
    gaps: decodeGaps(optionalText(row['tail_gaps'])),
    gapBefore: row['tail_gap_before'] as number,
  }
}

function decodeBoundary(row: SqlRow): PendingBoundary | undefined {
  if (row['boundary_reason'] === null) return undefined
  return { reason: row['boundary_reason'] as CommitReason, through: row['boundary_through'] as number }
}

/** SQL knows null, the state knows undefined. */
export function optionalText(value: SqlValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}

export function optionalNumber(value: SqlValue | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined
}
