import type { SqlRow } from '../../base/sqlite.js'
import type { Connection } from './connection.js'
import { splitList } from './entity-names.js'
import type { Fact } from './types.js'

/** A fact as it stands in the database, without its entities. */
export interface FactRow {
  readonly id: number
  readonly content: string
  readonly category: string
  readonly tags: string[]
  readonly trust: number
  readonly touchedAt: string
  readonly vector: Uint8Array | undefined
}

export const FACT_COLUMNS = `f.fact_id AS id, f.content, coalesce(f.category, 'general') AS category, coalesce(f.tags, '') AS tags,
  coalesce(f.trust_score, 0.5) AS trust, coalesce(f.updated_at, f.created_at, '') AS touched_at`

export function asFactRow(row: SqlRow): FactRow {
  const { id, content, category, tags, trust, touched_at: touchedAt, vector } = row
  return {
    id: Number(id),
    content: String(content),
    category: String(category),
    tags: splitList(String(tags)),
    trust: Number(trust),
    touchedAt: String(touchedAt),
    vector: vector instanceof Uint8Array ? vector : undefined,
  }
}

/** Reads these facts in this order; ids that are gone are left out. */
export function readFacts(connection: Connection, ids: readonly number[]): FactRow[] {
  const rows = connection.all(
    `SELECT ${FACT_COLUMNS}, f.hrr_vector AS vector FROM facts AS f WHERE f.fact_id IN (SELECT value FROM json_each(?))`,
    JSON.stringify(ids),
  )
  const byId = new Map(rows.map((row) => [Number(row['id']), asFactRow(row)]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

export function asFacts(connection: Connection, rows: readonly (FactRow & { readonly score?: number })[]): Fact[] {
  const names = readEntities(
    connection,
    rows.map(({ id }) => id),
  )
  return rows.map(({ id, content, category, tags, trust, score }) => ({
    id,
    content,
    category,
    tags,
    trust,
    entities: names.get(id) ?? [],
    ...(score === undefined ? {} : { score }),
  }))
}

export function readEntities(connection: Connection, ids: readonly number[]): Map<number, string[]> {
  const names = new Map<number, string[]>()
  const rows = connection.all(
    `SELECT l.fact_id AS id, e.name FROM fact_entities AS l JOIN entities AS e ON e.entity_id = l.entity_id
     WHERE l.fact_id IN (SELECT value FROM json_each(?)) ORDER BY l.fact_id, l.entity_id`,
    JSON.stringify(ids),
  )
  for (const row of rows) {
    const id = Number(row['id'])
    const known = names.get(id)
    if (known === undefined) names.set(id, [String(row['name'])])
    else known.push(String(row['name']))
  }
  return names
}
