import type { SqlValue } from '../../base/sqlite.js'

/** Everything one batch changes, as rows: plain values, so that it can be sent to a worker thread. */
export interface Changes {
  /** Rows of the outbox. */
  readonly appended: SqlValue[][]
  /** Retracted turns of segments that go on: their text is wiped, the chain stays whole. */
  readonly wiped: { readonly head: number; readonly session: number; readonly from: number; readonly to: number }[]
  /** Chains of segments that are done. */
  readonly dropped: { readonly head: number; readonly session: number; readonly isLong: boolean }[]
  /** New sessions: their number, then the columns. */
  readonly inserted: SqlValue[][]
  /** Known sessions: the columns, then their number. */
  readonly updated: SqlValue[][]
  /** Sessions in which nothing but the tail grew. */
  readonly marked: SqlValue[][]
  /** Rows of `segments`, new or changed. */
  readonly segments: SqlValue[][]
  /** Segments that are done or became the tail again: session and first generation. */
  readonly removed: SqlValue[][]
}

export function noChanges(): Changes {
  return { appended: [], wiped: [], dropped: [], inserted: [], updated: [], marked: [], segments: [], removed: [] }
}

/** How many rows a batch writes or removes at least. */
export function countChanges(changes: Changes): number {
  let count = 0
  for (const rows of Object.values(changes) as unknown[][]) count += rows.length
  return count
}
