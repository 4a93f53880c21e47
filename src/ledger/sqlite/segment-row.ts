import type { SqlRow, SqlValue } from '../../base/sqlite.js'
import type { ClaimedSegment, CommitReason, Segment } from '../../core/index.js'
import { hashText, mix } from './checksum.js'
import { rowDamaged } from './failure.js'
import { decodeGaps, encodeGaps, optionalNumber, optionalText } from './session-row.js'

/** The order of the columns in INSERT. */
export const SEGMENT_COLUMNS = Object.freeze([
  ...['session', 'from_generation', 'to_generation', 'state', 'owner', 'since', 'span', 'gaps', 'gap_before', 'head'],
  ...['idempotency_key', 'attempts', 'error', 'retry_at', 'token', 'instance', 'reason', 'claimed_at'],
  ...['receipt', 'ask_at', 'asks', 'settle_by', 'checksum'],
])

export function encodeSegment(session: number, segment: Segment, head: number): SqlValue[] {
  const sealed = segment.state === 'open' ? undefined : segment
  const claimed = segment.state === 'claimed' ? segment : undefined
  const accepted = segment.state === 'accepted' ? segment : undefined
  const receipt = segment.state === 'parked' ? segment.receipt : accepted?.receipt
  const values: SqlValue[] = [
    ...[session, segment.from, segment.to, segment.state, segment.owner ?? null, segment.since, segment.span],
    ...[
      encodeGaps(segment.gaps) ?? null,
      segment.state === 'open' ? segment.gapBefore : null,
      head,
      sealed?.key ?? null,
      sealed?.attempts ?? null,
      sealed?.error ?? null,
    ],
    segment.state === 'waiting' ? (segment.retryAt ?? null) : null,
    ...[claimed?.token ?? null, claimed?.instance ?? null, sealed?.reason ?? null, claimed?.claimedAt ?? null],
    ...[receipt ?? null, accepted?.askAt ?? null, accepted?.asks ?? null, accepted?.settleBy ?? null],
  ]
  return [...values, checkValues(values)]
}

/** A row of `segments` and its outbox head. Throws `CORRUPT` if it is not what was written. */
export function decodeSegment(row: SqlRow): { readonly segment: Segment; readonly head: number } {
  const values = SEGMENT_COLUMNS.slice(0, -1).map((column) => row[column] ?? null)
  if (row['checksum'] !== checkValues(values)) {
    throw rowDamaged(`the segment from ${String(row['from_generation'])} of row ${String(row['session'])}`)
  }
  return { segment: readSegment(row), head: row['head'] as number }
}

function readSegment(row: SqlRow): Segment {
  const base = {
    from: row['from_generation'] as number,
    to: row['to_generation'] as number,
    owner: optionalText(row['owner']),
    since: row['since'] as number,
    span: row['span'] as number,
    gaps: decodeGaps(optionalText(row['gaps'])),
  }
  const state = row['state'] as Segment['state']
  if (state === 'open') return { state, ...base, gapBefore: row['gap_before'] as number }
  const sealed = {
    ...base,
    key: row['idempotency_key'] as string,
    attempts: row['attempts'] as number,
    error: optionalText(row['error']),
    reason: row['reason'] as CommitReason,
  }
  switch (state) {
    case 'waiting':
      return { state, ...sealed, retryAt: optionalNumber(row['retry_at']) }
    case 'claimed':
      return { state, ...sealed, ...readClaim(row) }
    case 'accepted':
      return {
        state,
        ...sealed,
        receipt: row['receipt'] as string,
        askAt: row['ask_at'] as number,
        asks: row['asks'] as number,
        settleBy: row['settle_by'] as number,
      }
    case 'parked':
      return { state, ...sealed, receipt: optionalText(row['receipt']) }
    default:
      state satisfies never
      throw rowDamaged(`a segment of row ${String(row['session'])}`)
  }
}

function readClaim(row: SqlRow): Pick<ClaimedSegment, 'token' | 'instance' | 'claimedAt'> {
  return {
    token: row['token'] as number,
    instance: row['instance'] as string,
    claimedAt: row['claimed_at'] as number,
  }
}

function checkValues(values: readonly SqlValue[]): number {
  // A segment is written once a claim, not once a turn: the plain way is fast enough. JSON keeps 1 and "1" apart.
  return mix(hashText(JSON.stringify(values)), values.length)
}
