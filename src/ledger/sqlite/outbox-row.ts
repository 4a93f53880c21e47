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

/** Adds the values of one row to those of others. */
export function pushOutbox(values: SqlValue[], place: OutboxPlace, entry: OutboxEntry): void {
  const { id, previous, session } = place
  const { generation, at, turnId, messages } = entry
  const checksum = checkLink(place, generation, at, turnId)
  values.push(id, previous, session, generation, at, checksum, hashText(messages), turnId ?? null, messages ?? null)
}

/** One link of a chain, checked. `turnId` and text are gone once the turn was retracted. */
export interface OutboxLink {
  readonly id: number
  readonly previous: number
  readonly session: number
  readonly generation: number
  readonly turnId: string | undefined
}

/** What is read of a row to follow or to check a chain. */
export const LINK_COLUMNS = Object.freeze([
  ...['id', 'previous', 'session', 'generation', 'completed_at', 'checksum', 'turn_id'],
])

export function decodeLink(row: SqlRow): OutboxLink {
  if (!isSound(row)) throw rowDamaged(`row ${String(row['id'])} of the outbox`)
  return readLink(row)
}

export function readLink(row: SqlRow): OutboxLink {
  return {
    id: row['id'] as number,
    previous: row['previous'] as number,
    session: row['session'] as number,
    generation: row['generation'] as number,
    turnId: optionalText(row['turn_id']),
  }
}

/** Whether a link is what was written. Says nothing of the text. */
export function isSound(row: SqlRow): boolean {
  const { generation, turnId, ...place } = readLink(row)
  return row['checksum'] === checkLink(place, generation, row['completed_at'] as number, turnId)
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
