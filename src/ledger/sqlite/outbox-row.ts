import type { SqlRow, SqlValue } from '../../base/sqlite.js'
import type { OutboxEntry } from '../../core/index.js'
import { hashText, mix } from './checksum.js'
import { rowDamaged } from './failure.js'
import { optionalText } from './session-row.js'

/** Where a turn's row stands: its own number, the one before it in its segment (0: none) and its session's row. */
export interface OutboxPlace {
  readonly id: number
  readonly previous: number
  readonly session: number
}

/** `messages` comes last: whoever walks a chain does not read the text. */
export const OUTBOX_COLUMNS = Object.freeze([
  ...['id', 'previous', 'session', 'generation', 'completed_at', 'checksum', 'text_checksum', 'turn_id', 'messages'],
])

export function encodeOutbox(place: OutboxPlace, entry: OutboxEntry): SqlValue[] {
  const { id, previous, session } = place
  const { generation, at, turnId, messages } = entry
  return [
    ...[id, previous, session, generation, at, checkLink(place, generation, at, turnId), hashText(messages)],
    ...[turnId ?? null, messages ?? null],
  ]
}

/** One link of a chain, checked. `turnId` and text are gone once the turn was retracted. */
export interface OutboxLink {
  readonly id: number
  readonly previous: number
  readonly session: number
  readonly generation: number
  readonly turnId: string | undefined
}

export function decodeLink(row: SqlRow): OutboxLink {
  const id = row['id'] as number
  const previous = row['previous'] as number
  const session = row['session'] as number
  const generation = row['generation'] as number
  const turnId = optionalText(row['turn_id'])
  const checksum = checkLink({ id, previous, session }, generation, row['completed_at'] as number, turnId)
  if (row['checksum'] !== checksum) throw rowDamaged(`row ${id} of the outbox`)
  return { id, previous, session, generation, turnId }
}

export function decodeOutbox(row: SqlRow): OutboxEntry {
  const { generation, turnId } = decodeLink(row)
  const messages = optionalText(row['messages'])
  if (row['text_checksum'] !== hashText(messages))
    throw rowDamaged(`the text in row ${String(row['id'])} of the outbox`)
  return { generation, at: row['completed_at'] as number, turnId, messages }
}

function checkLink(place: OutboxPlace, generation: number, at: number, turnId: string | undefined): number {
  const { id, previous, session } = place
  return mix(mix(mix(mix(mix(hashText(turnId), id), previous), session), generation), at)
}
