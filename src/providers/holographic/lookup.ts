import type { Connection } from './connection.js'
import { entityKey } from './entities.js'
import { fold } from './fold.js'
import { categoryTerm, indexTerms, parts } from './words.js'

/** Terms hold letters, digits and marks only, so quoting them is all that FTS5 needs. */
const quoted = (term: string): string => `"${term}"`

function match(connection: Connection, expression: string, category: string | undefined, most: number): number[] {
  const restricted = category === undefined ? expression : `(${expression}) AND ${quoted(categoryTerm(category))}`
  // By rowid, newest first: FTS5 stops after `most` rows, whereas ORDER BY rank reads every match.
  return connection
    .all(
      'SELECT rowid AS id FROM tidemark_index WHERE tidemark_index MATCH ? ORDER BY rowid DESC LIMIT ?',
      restricted,
      most,
    )
    .map((row) => Number(row['id']))
}

export function matchAny(
  connection: Connection,
  term: string,
  prefix: boolean,
  category: string | undefined,
  most: number,
): number[] {
  return match(connection, prefix ? `${quoted(term)} *` : quoted(term), category, most)
}

export function matchAll(
  connection: Connection,
  terms: readonly string[],
  category: string | undefined,
  most: number,
): number[] {
  return terms.length === 0 ? [] : match(connection, terms.map(quoted).join(' AND '), category, most)
}

/** The exact answer to "which facts are about these": one join. */
export function newestFacts(connection: Connection, entityIds: readonly number[], most: number): number[] {
  return connection
    .all(
      `SELECT DISTINCT fact_id AS id FROM fact_entities WHERE entity_id IN (SELECT value FROM json_each(?))
       ORDER BY fact_id DESC LIMIT ?`,
      JSON.stringify(entityIds),
      most,
    )
    .map((row) => Number(row['id']))
}

/** Of these facts, those that are about one of the entities. */
export function keepLinked(connection: Connection, factIds: readonly number[], entityIds: readonly number[]): number[] {
  return connection
    .all(
      `SELECT DISTINCT fact_id AS id FROM fact_entities WHERE fact_id IN (SELECT value FROM json_each(?))
       AND entity_id IN (SELECT value FROM json_each(?)) ORDER BY fact_id DESC`,
      JSON.stringify(factIds),
      JSON.stringify(entityIds),
    )
    .map((row) => Number(row['id']))
}

/** Facts whose text has the name in it, for names that nobody has registered. */
export function mentions(connection: Connection, name: string, most: number): number[] {
  const ids = matchAll(connection, [...indexTerms(name)], undefined, most)
  const key = entityKey(name)
  const plain = fold(name).trim()
  return connection
    .all(
      'SELECT fact_id AS id, content, tags FROM facts WHERE fact_id IN (SELECT value FROM json_each(?)) ORDER BY fact_id DESC',
      JSON.stringify(ids),
    )
    .filter((row) => {
      const text = `${String(row['content'])}\n${String(row['tags'] ?? '')}`
      return ` ${parts(text).words.join(' ')} `.includes(` ${key} `) || fold(text).includes(plain)
    })
    .map((row) => Number(row['id']))
}
