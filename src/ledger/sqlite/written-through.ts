import type { SqlDatabase } from '../../base/sqlite.js'

/** Notes up to which row of the outbox every session is written. The guard is the complement of the number. */
export const NOTE_WRITTEN = 'UPDATE ledger SET written_through = ?1, written_guard = ~?1'

/** A note that is damaged is as good as none: then all of the outbox is looked at. */
export function readWrittenThrough(db: SqlDatabase): number {
  const row = db.prepare('SELECT written_through, written_guard FROM ledger').get()
  const through = row?.['written_through']
  return typeof through === 'number' && row?.['written_guard'] === -through - 1 ? through : 0
}
