import { HolographicProvider, type Fact } from '../../src/providers/holographic/index.js'
import { similarity, type VectorSpace } from '../../src/providers/holographic/vectors.js'
import { ReferenceRanking, type ReferenceFact } from './reference.js'

/** Random stores with known answers, on which the reference's formulas and ours are measured side by side. */
export type Random = () => number

/** Small, seeded, good enough for test data (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)]!

const FIRST = ['Alice', 'Bruno', 'Chiara', 'Dmitri', 'Elena', 'Farid', 'Greta', 'Hiro', 'Ingrid', 'Jonas']
const LAST = ['Smith', 'Rossi', 'Novak', 'Tanaka', 'Garcia', 'Weber', 'Dubois', 'Larsen']
const VERBS = [
  'manages',
  'visits',
  'repairs',
  'paints',
  'measures',
  'teaches',
  'reviews',
  'imports',
  'records',
  'plants',
]
const NOUNS = (
  'garden engine harbour ledger violin orchard turbine archive lantern bakery compass glacier meadow printer saddle ' +
  'telescope canyon furnace kettle mosaic parcel quarry ribbon signal tunnel vineyard workshop anchor bridge candle'
).split(' ')

export interface Store {
  readonly facts: readonly { readonly content: string; readonly entities: readonly string[] }[]
  readonly names: readonly string[]
}

/** Facts about one or two of twelve people, each with a verb and two nouns of its own. */
export function randomStore(random: Random, size = 80): Store {
  const names = Array.from(
    new Set(Array.from({ length: 40 }, () => `${pick(random, FIRST)} ${pick(random, LAST)}`)),
  ).slice(0, 12)
  const facts = new Map<string, { content: string; entities: string[] }>()
  while (facts.size < size) {
    const one = pick(random, names)
    const two = random() < 0.4 ? pick(random, names) : one
    const content = `${one} ${pick(random, VERBS)} the ${pick(random, NOUNS)} and the ${pick(random, NOUNS)}${two === one ? '' : ` with ${two}`}`
    facts.set(content, { content, entities: [...new Set([one, two])] })
  }
  return { facts: [...facts.values()], names }
}

/** The chance that a fact that belongs to the answer outranks one that does not. */
export function auc(scores: readonly number[], belongs: readonly boolean[]): number {
  const inside = scores.filter((_, i) => belongs[i])
  const outside = scores.filter((_, i) => !belongs[i])
  if (inside.length === 0 || outside.length === 0) return Number.NaN
  let wins = 0
  for (const good of inside) for (const bad of outside) wins += good > bad ? 1 : good === bad ? 0.5 : 0
  return wins / (inside.length * outside.length)
}

export interface Quality {
  readonly probe: number
  readonly related: number
  readonly reason: number
  readonly search: number
}

/** One store, three rankings of the same questions: the formulas of the reference, ours, and our answers as given. */
export async function measureStore(
  random: Random,
  space: VectorSpace,
): Promise<{ reference: Quality; formula: Quality; answers: Quality }> {
  const { facts, names } = randomStore(random)
  const encoded: ReferenceFact[] = facts.map((fact) => ({ ...fact, vector: space.fact(fact.content, fact.entities) }))
  const theirs = new ReferenceRanking(space)
  const memory = await HolographicProvider.open({ path: ':memory:', dimensions: space.dimensions })
  try {
    for (const { content } of facts) await memory.add(content)
    const given = (answer: readonly Fact[]): number[] =>
      facts.map(({ content }) => answer.find((fact) => fact.content === content)?.score ?? 0)
    const about = (name: string): boolean[] => facts.map(({ entities }) => entities.includes(name))
    const pairs = facts.filter(({ entities }) => entities.length === 2).map(({ entities }) => entities)
    const words = NOUNS.filter((noun) => facts.some(({ content }) => content.includes(noun)))
    const limit = 80
    const [probe, related, reason, search] = [
      await compare(
        names,
        about,
        (fact, name) => theirs.probe(fact, name),
        (fact, name) => similarity(fact.vector, space.entityKey(name)),
        (name) => memory.probe(name, { limit }),
      ),
      await compare(
        names,
        about,
        (fact, name) => theirs.related(fact, name),
        (fact, name) =>
          Math.max(similarity(fact.vector, space.entityKey(name)), similarity(fact.vector, space.contentKey(name))),
        (name) => memory.related(name, { limit }),
      ),
      await compare(
        pairs,
        (both) => facts.map(({ entities }) => both.every((name) => entities.includes(name))),
        (fact, both) => theirs.reason(fact, both),
        (fact, both) => Math.min(...both.map((name) => similarity(fact.vector, space.entityKey(name)))),
        (both) => memory.reason(both, { limit }),
      ),
      await compare(
        words,
        (word) => facts.map(({ content }) => content.split(' ').includes(word)),
        (fact, word) => theirs.search(fact, word),
        (fact, word) => similarity(space.contentKey(word), fact.vector),
        (word) => memory.search(word, { limit }),
      ),
    ]
    const quality = (index: 0 | 1 | 2): Quality => ({
      probe: probe[index],
      related: related[index],
      reason: reason[index],
      search: search[index],
    })
    return { reference: quality(0), formula: quality(1), answers: quality(2) }

    async function compare<Q>(
      questions: readonly Q[],
      belongs: (question: Q) => boolean[],
      reference: (fact: ReferenceFact, question: Q) => number,
      formula: (fact: ReferenceFact, question: Q) => number,
      ask: (question: Q) => Promise<readonly Fact[]>,
    ): Promise<[number, number, number]> {
      const values: [number, number, number][] = []
      for (const question of questions) {
        const inside = belongs(question)
        values.push([
          auc(
            encoded.map((fact) => reference(fact, question)),
            inside,
          ),
          auc(
            encoded.map((fact) => formula(fact, question)),
            inside,
          ),
          auc(given(await ask(question)), inside),
        ])
      }
      const known = values.filter((row) => !row.some(Number.isNaN))
      const mean = (i: 0 | 1 | 2): number => known.reduce((sum, row) => sum + row[i], 0) / known.length
      return [mean(0), mean(1), mean(2)]
    }
  } finally {
    await memory.close()
  }
}

export interface Pair {
  readonly a: string
  readonly b: string
  readonly entity: string
  readonly contradicts: boolean
}

/** Pairs about somebody that no other pair is about: one word changed, or nothing in common but the person. */
export function randomPairs(random: Random, count: number): Pair[] {
  return Array.from({ length: count }, (_, i) => {
    const entity = `${pick(random, FIRST)} ${pick(random, LAST)}${String.fromCharCode(97 + (i % 26))}${String.fromCharCode(97 + Math.floor(i / 26))}`
    const [one, two, three, four] = shuffled(random, NOUNS) as [string, string, string, string]
    const [verb, other] = shuffled(random, VERBS) as [string, string]
    const a = `${entity} ${verb} the ${one} near the ${two}`
    const contradicts = i % 2 === 0
    const changed =
      random() < 0.5
        ? `${entity} ${verb} the ${three} near the ${two}`
        : `${entity} ${other} the ${one} near the ${two}`
    return { a, b: contradicts ? changed : `${entity} ${other} the ${three} near the ${four}`, entity, contradicts }
  })
}

function shuffled<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ item }) => item)
}

export interface Alarms {
  readonly recall: number
  readonly falseAlarms: number
}

export async function measureContradictions(
  random: Random,
  space: VectorSpace,
  count: number,
): Promise<{ reference: Alarms; ours: Alarms }> {
  const pairs = randomPairs(random, count)
  const theirs = new ReferenceRanking(space)
  const encode = (content: string, entity: string): ReferenceFact => ({
    content,
    entities: [entity],
    vector: space.fact(content, [entity]),
  })
  const memory = await HolographicProvider.open({ path: ':memory:', dimensions: 16 })
  try {
    for (const { a, b } of pairs) {
      await memory.add(a)
      await memory.add(b)
    }
    const found = new Set(
      (await memory.contradict({ limit: 1_000 })).map((pair) => [pair.a.content, pair.b.content].sort().join('\n')),
    )
    const rates = (isFound: (pair: Pair) => boolean): Alarms => {
      const share = (contradicts: boolean): number => {
        const group = pairs.filter((pair) => pair.contradicts === contradicts)
        return group.filter(isFound).length / group.length
      }
      return { recall: share(true), falseAlarms: share(false) }
    }
    return {
      reference: rates(({ a, b, entity }) => theirs.contradict(encode(a, entity), encode(b, entity)) !== undefined),
      ours: rates(({ a, b }) => found.has([a, b].sort().join('\n'))),
    }
  } finally {
    await memory.close()
  }
}
