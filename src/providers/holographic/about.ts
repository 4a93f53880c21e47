import type { Connection } from './connection.js'
import { decodeVector } from './codec.js'
import type { EntityNames } from './entity-names.js'
import { readFacts, type FactRow } from './fact-rows.js'
import { keepLinked, mentions, newestFacts } from './lookup.js'
import { standing, type Weighing } from './ranking.js'
import { bind, similarity, type Vector, type VectorSpace } from './vectors.js'

const MOST_WEIGHED = 1_000
const MOST_RANKED = 128
const MOST_SPELLINGS = 4
/** Where a fact has no vector: about the likeness of a fact with its content and two entities. */
const TYPICAL_LIKENESS = 0.5

type Likeness = (fact: Vector) => number

/**
 * Questions about entities. Which facts are about an entity is known exactly, by a join; the vectors say how much of a
 * fact is about it. A name that is no entity is looked for in the text.
 */
export class About {
  readonly #connection: Connection
  readonly #space: VectorSpace
  readonly #names: EntityNames

  constructor(connection: Connection, space: VectorSpace, names: EntityNames) {
    this.#connection = connection
    this.#space = space
    this.#names = names
  }

  /** Facts about the entity: sim(fact, K). */
  probe(entity: string, limit: number, weighing: Weighing): (FactRow & { score: number })[] {
    const meaning = this.#names.meaning(entity)
    const linked = newestFacts(this.#connection, meaning, MOST_WEIGHED)
    const ids = linked.length > 0 ? linked : mentions(this.#connection, entity, MOST_WEIGHED)
    return this.#rank(ids, this.#likenessTo(entity, meaning), limit, weighing)
  }

  /** Facts about the entity or that have it in their text: the better of sim(fact, K) and sim(fact, bind(text, content role)). */
  related(entity: string, limit: number, weighing: Weighing): (FactRow & { score: number })[] {
    const meaning = this.#names.meaning(entity)
    const ids = new Set([
      ...newestFacts(this.#connection, meaning, MOST_WEIGHED),
      ...mentions(this.#connection, entity, MOST_WEIGHED),
    ])
    const asEntity = this.#likenessTo(entity, meaning)
    const asContent = this.#space.contentKey(entity)
    return this.#rank([...ids], (fact) => Math.max(asEntity(fact), similarity(fact, asContent)), limit, weighing)
  }

  /** Facts about all of the entities: the least of sim(fact, K) over them. */
  reason(entities: readonly string[], limit: number, weighing: Weighing): (FactRow & { score: number })[] {
    const asked = entities.map((name) => ({ name, meaning: this.#names.meaning(name) }))
    const likenesses = asked.map(({ name, meaning }) => this.#likenessTo(name, meaning))
    const ids = this.#aboutAll(asked)
    return this.#rank(ids, (fact) => Math.min(...likenesses.map((likeness) => likeness(fact))), limit, weighing)
  }

  #aboutAll(asked: readonly { name: string; meaning: readonly number[] }[]): number[] {
    const unknown = asked.filter(({ meaning }) => meaning.length === 0)
    const known = asked.filter(({ meaning }) => meaning.length > 0)
    const mentioned = unknown.map(({ name }) => new Set(mentions(this.#connection, name, MOST_WEIGHED)))
    const [first, ...others] = mentioned
    if (first === undefined) return this.#linkedToAll(known.map(({ meaning }) => meaning))
    const all = [...first].filter((id) => others.every((ids) => ids.has(id)))
    return known.reduce((ids, { meaning }) => keepLinked(this.#connection, ids, meaning), all)
  }

  /** SQLite walks the links of the first and looks the others up. */
  #linkedToAll(meanings: readonly (readonly number[])[]): number[] {
    const [first, ...others] = [...meanings].sort((a, b) => this.#count(a) - this.#count(b))
    if (first === undefined) return []
    const also = others.map(
      () =>
        'AND EXISTS (SELECT 1 FROM fact_entities AS o WHERE o.fact_id = l.fact_id AND o.entity_id IN (SELECT value FROM json_each(?)))',
    )
    return this.#connection
      .all(
        `SELECT DISTINCT l.fact_id AS id FROM fact_entities AS l
         WHERE l.entity_id IN (SELECT value FROM json_each(?)) ${also.join(' ')} ORDER BY l.fact_id DESC LIMIT ${MOST_WEIGHED}`,
        ...[first, ...others].map((meaning) => JSON.stringify(meaning)),
      )
      .map((row) => Number(row['id']))
  }

  #count(meaning: readonly number[]): number {
    return newestFacts(this.#connection, meaning, MOST_WEIGHED).length
  }

  /** An entity may stand in a vector under any of its spellings: the nearest counts. */
  #likenessTo(name: string, meaning: readonly number[]): Likeness {
    const stored = this.#connection
      .all('SELECT name FROM entities WHERE entity_id IN (SELECT value FROM json_each(?))', JSON.stringify(meaning))
      .map((row) => String(row['name']))
    const spellings = [...new Set([name, ...stored].map((spelling) => spelling.toLowerCase()))].slice(0, MOST_SPELLINGS)
    const keys = spellings.map((spelling) => bind(this.#space.atom(spelling), this.#space.entityRole))
    return (fact) => Math.max(...keys.map((key) => similarity(fact, key)))
  }

  #rank(
    ids: readonly number[],
    likeness: Likeness,
    limit: number,
    weighing: Weighing,
  ): (FactRow & { score: number })[] {
    const weighed = standing(this.#connection, ids, weighing)
      .sort((a, b) => b.weight - a.weight || b.id - a.id)
      .slice(0, Math.max(MOST_RANKED, limit))
    const weights = new Map(weighed.map(({ id, weight }) => [id, weight]))
    return readFacts(this.#connection, [...weights.keys()])
      .map((fact) => {
        const vector = fact.vector === undefined ? undefined : decodeVector(fact.vector, this.#space.dimensions)
        const score =
          (((vector === undefined ? TYPICAL_LIKENESS : likeness(vector)) + 1) / 2) * (weights.get(fact.id) ?? 0)
        return { ...fact, score }
      })
      .sort((a, b) => b.score - a.score || b.id - a.id)
      .slice(0, limit)
  }
}
