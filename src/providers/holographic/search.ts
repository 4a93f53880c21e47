import type { Connection } from './connection.js'
import { decodeVector } from './codec.js'
import { readFacts, type FactRow } from './fact-rows.js'
import { entityKey } from './entities.js'
import type { EntityNames } from './entity-names.js'
import { matchAll, matchAny, newestFacts } from './lookup.js'
import { standing, type Weighing } from './ranking.js'
import { STOP_WORDS } from './stop-words.js'
import { similarity, type VectorSpace } from './vectors.js'
import { indexTerms, jaccard, parts, queryTerms } from './words.js'

export interface SearchRequest {
  readonly limit: number
  readonly category: string | undefined
  readonly minTrust: number
}

/** One word of the question, the index term that stands for it, and how much finding it says. */
interface Term {
  readonly text: string
  readonly prefix: boolean
  readonly weight: number
}

/** Facts read for one answer at most: first by their numbers only, then the best of them with text and vector. */
const MOST_WEIGHED = 1_000
const MOST_RANKED = 96
const MOST_PER_TERM = 600
/** Share of the words that were found, against likeness of the whole; the proportion of the plugin. */
const FOUND_SHARE = 4 / 7

/**
 * Words and entities give candidates, vectors only help to rank them. So the cost of a search depends on how often its
 * words occur, up to a limit, and not on how many facts there are.
 */
export class Search {
  readonly #connection: Connection
  readonly #space: VectorSpace
  readonly #names: EntityNames
  readonly #hrrWeight: number

  constructor(connection: Connection, space: VectorSpace, names: EntityNames, hrrWeight: number) {
    this.#connection = connection
    this.#space = space
    this.#names = names
    this.#hrrWeight = hrrWeight
  }

  run(query: string, request: SearchRequest, weighing: Weighing): (FactRow & { score: number })[] {
    const { terms, masks, named } = this.#candidates(query, request)
    const total = terms.reduce((sum, { weight }) => sum + weight, 0)
    if (total === 0) return []
    const share = (mask: number): number =>
      terms.reduce((sum, { weight }, i) => ((mask & (1 << i)) === 0 ? sum : sum + weight), 0) / total
    const hopeful = [...masks].sort((a, b) => share(b[1]) - share(a[1]) || b[0] - a[0]).slice(0, MOST_WEIGHED)
    const weighed = standing(
      this.#connection,
      hopeful.map(([id]) => id),
      weighing,
    )
      .filter(({ trust, category }) => trust >= request.minTrust && category === (request.category ?? category))
      .map(({ id, weight }) => ({ id, weight, guess: weight * share(masks.get(id) ?? 0) }))
      .sort((a, b) => b.guess - a.guess)
      .slice(0, MOST_RANKED)
    const weights = new Map(weighed.map(({ id, weight }) => [id, weight]))
    const asked = this.#space.contentKey(query)
    const askedTerms = new Set(queryTerms(query))
    return readFacts(this.#connection, [...weights.keys()])
      .map((fact) => {
        const own = indexTerms(`${fact.content}\n${fact.tags.join('\n')}`)
        const found = share(maskOf(terms, own) | (named.get(fact.id) ?? 0))
        const telling = new Set([...own].filter((term) => !STOP_WORDS.has(term)))
        const lexical = FOUND_SHARE * found + (1 - FOUND_SHARE) * jaccard(askedTerms, telling)
        const vector = fact.vector === undefined ? undefined : decodeVector(fact.vector, this.#space.dimensions)
        // A fact without a vector is not punished for it: about what a fact that matches this well would have.
        const likeness = vector === undefined ? lexical / 2 : Math.max(0, similarity(asked, vector))
        const relevance = (1 - this.#hrrWeight) * lexical + this.#hrrWeight * likeness
        return { ...fact, score: found === 0 ? 0 : relevance * (weights.get(fact.id) ?? 0) }
      })
      .filter(({ score }) => score > 0)
      .sort((a, b) => b.score - a.score || b.id - a.id)
      .slice(0, request.limit)
  }

  /** For each candidate the set of terms it has, one bit each; `named` is the part that it has by its entities. */
  #candidates(
    query: string,
    request: SearchRequest,
  ): { terms: Term[]; masks: Map<number, number>; named: Map<number, number> } {
    const newest = Number(this.#connection.get('SELECT max(fact_id) AS id FROM facts')?.['id'] ?? 0)
    const masks = new Map<number, number>()
    const named = new Map<number, number>()
    const set = (map: Map<number, number>, id: number, bits: number): void =>
      void map.set(id, (map.get(id) ?? 0) | bits)
    const terms = queryTerms(query).map((text, i) => {
      const { ids, prefix, form } = this.#find(text, request.category)
      for (const id of ids) set(masks, id, 1 << i)
      return { text: form, prefix, weight: rarity(ids, newest) }
    })
    const common = terms.filter(({ prefix }, i) => !prefix && countBit(masks, i) >= MOST_PER_TERM)
    if (common.length > 1) {
      const all = common.reduce((bits, term) => bits | (1 << terms.indexOf(term)), 0)
      const every = common.map(({ text }) => text)
      for (const id of matchAll(this.#connection, every, request.category, MOST_PER_TERM)) set(masks, id, all)
    }
    for (const { key, entityId } of this.#names.meaningOfKeys(keysIn(query))) {
      const words = new Set(key.split(' '))
      const bits = terms.reduce(
        (mask, { text }, i) => (words.has(text) || key.includes(text) ? mask | (1 << i) : mask),
        0,
      )
      if (bits === 0) continue
      for (const id of newestFacts(this.#connection, [entityId], MOST_PER_TERM)) {
        set(masks, id, bits)
        set(named, id, bits)
      }
    }
    return { terms, masks, named }
  }

  /** The word itself, else words that begin with it, else words that begin like it: endings differ in most languages. */
  #find(text: string, category: string | undefined): { ids: number[]; prefix: boolean; form: string } {
    const exact = matchAny(this.#connection, text, false, category, MOST_PER_TERM)
    if (exact.length > 0 || text.length < 4) return { ids: exact, prefix: false, form: text }
    for (const form of beginnings(text)) {
      const ids = matchAny(this.#connection, form, true, category, MOST_PER_TERM)
      if (ids.length > 0) return { ids, prefix: true, form }
    }
    return { ids: [], prefix: false, form: text }
  }
}

function beginnings(word: string): string[] {
  return [0, 2, 4]
    .filter((cut) => cut === 0 || word.length >= 2 * cut + 2)
    .map((cut) => word.slice(0, word.length - cut))
}

/** Rare words say more. Ids come newest first and may be cut off; how far down they reach tells how many more there are. */
function rarity(ids: readonly number[], newest: number): number {
  const reach = ids.length < MOST_PER_TERM ? newest : newest - (ids.at(-1) ?? 0) + 1
  const frequency = Math.max(1, ids.length) / Math.max(1, reach)
  return Math.log(1 + 1 / frequency)
}

function countBit(masks: ReadonlyMap<number, number>, i: number): number {
  let count = 0
  for (const mask of masks.values()) if ((mask & (1 << i)) !== 0) count++
  return count
}

function maskOf(terms: readonly Term[], own: ReadonlySet<string>): number {
  return terms.reduce((mask, { text, prefix }, i) => {
    const has = own.has(text) || (prefix && [...own].some((term) => term.startsWith(text)))
    return has ? mask | (1 << i) : mask
  }, 0)
}

const MOST_KEY_WORDS = 5
const MOST_KEYS = 200

/** Every stretch of the question that might be somebody's name. */
function keysIn(query: string): string[] {
  const { words, runs } = parts(query)
  const keys = new Set<string>([entityKey(query)])
  for (let from = 0; from < words.length; from++) {
    for (let length = 1; length <= MOST_KEY_WORDS && from + length <= words.length; length++) {
      keys.add(words.slice(from, from + length).join(' '))
    }
  }
  for (const run of runs) {
    const characters = Array.from(run)
    for (let from = 0; from < characters.length; from++) {
      for (let length = 2; length <= 8 && from + length <= characters.length; length++) {
        keys.add(characters.slice(from, from + length).join(''))
      }
    }
  }
  return [...keys].filter((key) => key !== '' && !STOP_WORDS.has(key)).slice(0, MOST_KEYS)
}
