import type { SqlDatabase, SqlRow } from '../../base/sqlite.js'
import type { LedgerStats } from '../ledger.js'

/** Counts over the unfinished sessions; finished ones are not looked at. */
export function prepareStats(db: SqlDatabase): () => LedgerStats {
  const statement = db.prepare(
    `SELECT
        (SELECT count(*) FROM segments WHERE state = 'accepted') AS unsettled,
        (SELECT count(*) FROM segments WHERE state = 'parked') AS parked,
        (SELECT count(*) FROM sessions WHERE waiting_since IS NOT NULL AND tail_from IS NOT NULL) AS tails,
        (SELECT count(DISTINCT session) FROM segments JOIN sessions ON sessions.id = segments.session
          WHERE state NOT IN ('accepted', 'parked') AND tail_from IS NULL) AS others,
        (SELECT min(tail_since) FROM sessions WHERE waiting_since IS NOT NULL) AS tails_since,
        (SELECT min(since) FROM segments WHERE state <> 'accepted') AS others_since`,
  )
  return () => toStats(statement.get())
}

function toStats(counts: SqlRow | undefined): LedgerStats {
  const number = (name: string): number => Number(counts?.[name] ?? 0)
  const times = [counts?.['tails_since'], counts?.['others_since']].filter((since) => typeof since === 'number')
  return {
    dirtySessions: number('tails') + number('others'),
    uncommittedSince: times.length === 0 ? undefined : Math.min(...times),
    unsettled: number('unsettled'),
    parked: number('parked'),
  }
}
