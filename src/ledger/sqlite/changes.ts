import type { SqlValue } from '../../base/sqlite.js'
import { OUTBOX_COLUMNS } from './outbox-row.js'

/** Everything one batch changes, as rows: plain values, so that it can be sent to a worker thread. */
export interface Changes {
  /** Rows of the outbox, the values of one after those of the other: there are many, and they are written many at once. */
  readonly appended: SqlValue[]
  /** Retracted turns of segments that go on: their text is wiped, the chain stays whole. */
  readonly wiped: { readonly head: number; readonly session: number; readonly from: number; readonly to: number }[]
  /** Chains of segments that are done. */
  readonly dropped: { readonly head: number; readonly session: number; readonly isLong: boolean }[]
  /** New sessions: their number, then the columns. */
  readonly inserted: SqlValue[][]
  /** Known sessions: the columns, then their number. */
  readonly updated: SqlValue[][]
  /** Sessions in which nothing but the tail grew, if their row is written now. */
  readonly marked: SqlValue[][]
  /** Rows of `segments`, new or changed. */
  readonly segments: SqlValue[][]
  /** Segments that are done or became the tail again: session and first generation. */
  readonly removed: SqlValue[][]
  /** Up to which row of the outbox every session is written: one number, or none. */
  readonly noted: number[]
}

export function noChanges(): Changes {
  return {
    appended: [],
    wiped: [],
    dropped: [],
    inserted: [],
    updated: [],
    marked: [],
    segments: [],
    removed: [],
    noted: [],
  }
}

/** How many rows a batch writes or removes at least. */
export function countChanges(changes: Changes): number {
  let count = countAppended(changes) - changes.appended.length
  for (const rows of Object.values(changes) as unknown[][]) count += rows.length
  return count
}

export function countAppended({ appended }: Changes): number {
  return appended.length / OUTBOX_COLUMNS.length
}
