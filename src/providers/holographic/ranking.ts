import type { Connection } from './connection.js'
import { ageInDays } from './content.js'

/** What weighs a fact beside what was asked. */
export interface Weighing {
  readonly nowMs: number
  readonly halfLifeDays: number
}

/** 1 when fresh, half of it after every half-life. A time that cannot be read, or lies ahead, does not count against a fact. */
export function decay(touchedAt: string, { nowMs, halfLifeDays }: Weighing): number {
  if (halfLifeDays === 0) return 1
  const age = ageInDays(touchedAt, nowMs)
  return age === undefined || age <= 0 ? 1 : 0.5 ** (age / halfLifeDays)
}

/** Trust, category and weight (trust times decay) of facts, without reading their text or vectors. */
export function standing(
  connection: Connection,
  ids: readonly number[],
  weighing: Weighing,
): { id: number; trust: number; category: string; weight: number }[] {
  return connection
    .all(
      `SELECT fact_id AS id, coalesce(category, 'general') AS category, coalesce(trust_score, 0.5) AS trust,
         coalesce(updated_at, created_at, '') AS touched_at
       FROM facts WHERE fact_id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(ids),
    )
    .map((row) => {
      const trust = Number(row['trust'])
      const weight = trust * decay(String(row['touched_at']), weighing)
      return { id: Number(row['id']), category: String(row['category']), trust, weight }
    })
}
