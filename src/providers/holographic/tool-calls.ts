import { TidemarkError } from '../../base/errors.js'
import { splitList } from './entity-names.js'
import { ACTIONS, FACT_FEEDBACK, FACT_STORE, RATINGS, type Action, type Rating } from './tools.js'
import type { Contradiction, Fact, FactPatch } from './types.js'

/** The operations behind the tools. */
export interface ToolTarget {
  add(content: string, options: { category?: string; tags?: string[] }): Promise<{ id: number; added: boolean }>
  search(query: string, options: { limit?: number; category?: string; minTrust?: number }): Promise<Fact[]>
  probe(entity: string, options: { limit?: number }): Promise<Fact[]>
  related(entity: string, options: { limit?: number }): Promise<Fact[]>
  reason(entities: readonly string[], options: { limit?: number }): Promise<Fact[]>
  contradict(options: { limit?: number }): Promise<Contradiction[]>
  update(id: number, patch: FactPatch): Promise<Fact>
  remove(id: number): Promise<boolean>
  list(options: { limit?: number; category?: string }): Promise<Fact[]>
  feedback(id: number, rating: Rating): Promise<Fact>
}

type Arguments = Readonly<Record<string, unknown>>

/** What the model got wrong, in words it can act on. */
class BadCall extends Error {}

/**
 * Answers a tool call with JSON text for the model. Whatever the model got wrong comes back as `{ "error": … }`, so that
 * it can try again; a database that fails is the host's business and rejects.
 */
export async function handleToolCall(target: ToolTarget, name: string, args: unknown): Promise<string> {
  try {
    const given = parseArguments(args)
    if (name === FACT_STORE) return JSON.stringify(await callStore(target, oneOf(given, 'action', ACTIONS), given))
    if (name === FACT_FEEDBACK) {
      return JSON.stringify(await target.feedback(factId(given), oneOf<Rating>(given, 'action', RATINGS)))
    }
    throw new BadCall(`There is no tool ${name}; there are ${FACT_STORE} and ${FACT_FEEDBACK}.`)
  } catch (error) {
    const modelsFault =
      error instanceof BadCall ||
      error instanceof TypeError ||
      (error instanceof TidemarkError && (error.code === 'NOT_FOUND' || error.code === 'FACT_EXISTS'))
    if (!modelsFault) throw error
    return JSON.stringify({ error: error.message })
  }
}

async function callStore(target: ToolTarget, action: Action, given: Arguments): Promise<unknown> {
  const limit = optional(given, 'limit', asNumber)
  const category = optional(given, 'category', asText)
  const tags = optional(given, 'tags', asTags)
  const inCategory = { ...limit, ...category }
  switch (action) {
    case 'add':
      return target.add(text(given, 'content'), { ...category, ...tags })
    case 'search': {
      const minTrust = given['min_trust'] === undefined ? {} : { minTrust: asNumber(given['min_trust'], 'min_trust') }
      return results(await target.search(text(given, 'query'), { ...inCategory, ...minTrust }))
    }
    case 'probe':
      return results(await target.probe(text(given, 'entity'), limit))
    case 'related':
      return results(await target.related(text(given, 'entity'), limit))
    case 'reason':
      return results(await target.reason(names(given), limit))
    case 'contradict':
      return results(await target.contradict(limit))
    case 'update': {
      const trustDelta =
        given['trust_delta'] === undefined ? {} : { trustDelta: asNumber(given['trust_delta'], 'trust_delta') }
      return target.update(factId(given), {
        ...optional(given, 'content', asText),
        ...category,
        ...tags,
        ...trustDelta,
      })
    }
    case 'remove':
      return { removed: await target.remove(factId(given)) }
    case 'list':
      return results(await target.list(inCategory))
    default:
      return action satisfies never
  }
}

function results<T>(found: readonly T[]): { results: readonly T[]; count: number } {
  return { results: found, count: found.length }
}

function parseArguments(args: unknown): Arguments {
  let given = args
  if (typeof args === 'string') {
    try {
      given = JSON.parse(args)
    } catch {
      throw new BadCall('The arguments are no valid JSON.')
    }
  }
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new BadCall('The arguments must be a JSON object.')
  // Models send null for what they leave out.
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
}

function optional<K extends string, T>(
  given: Arguments,
  key: K,
  read: (value: unknown, key: string) => T,
): { [P in K]?: T } {
  return (given[key] === undefined ? {} : { [key]: read(given[key], key) }) as { [P in K]?: T }
}

function text(given: Arguments, key: string): string {
  if (given[key] === undefined) throw new BadCall(`${key} is missing.`)
  return asText(given[key], key)
}

function asText(value: unknown, key: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw new BadCall(`${key} must be a non-empty string.`)
  return value
}

function asNumber(value: unknown, key: string): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  if (typeof number !== 'number' || !Number.isFinite(number)) throw new BadCall(`${key} must be a number.`)
  return number
}

function asTags(value: unknown, key: string): string[] {
  if (typeof value === 'string') return splitList(value)
  if (Array.isArray(value)) return value.map((tag) => asText(tag, key))
  throw new BadCall(`${key} must be comma-separated text.`)
}

function names(given: Arguments): string[] {
  const value = given['entities'] ?? given['entity']
  const list = typeof value === 'string' ? splitList(value) : value
  if (!Array.isArray(list) || list.length === 0) throw new BadCall('entities must be a list of names.')
  return list.map((name) => asText(name, 'entities'))
}

function factId(given: Arguments): number {
  if (given['fact_id'] === undefined) throw new BadCall('fact_id is missing.')
  return asNumber(given['fact_id'], 'fact_id')
}

function oneOf<T extends string>(given: Arguments, key: string, words: readonly T[]): T {
  const word = words.find((candidate) => candidate === given[key])
  if (word === undefined) throw new BadCall(`${key} must be one of ${words.join(', ')}.`)
  return word
}
