import { bodyOf, forbidExtra, type Call, type Handler } from './call.js'
import { invalid, okBare, type Answer } from './envelope.js'
import { ownerOf } from './model.js'

const FIND = [
  'query',
  'target_uri',
  'context_type',
  'limit',
  'score_threshold',
  'filter',
  'tags',
  'since',
  'until',
  'level',
  'telemetry',
]
const SEARCH = [...FIND, 'session_id', 'mode']

/** Unknown keys are 400; a `session_id` that does not exist is not an error (`search.py:121-231,415-447`). */
export const find: Handler = (call) => answer(call, FIND)
export const search: Handler = (call) => answer(call, SEARCH)

/** Deprecated alias (`search.py:289-474`). */
export const recall: Handler = (call) => ({
  ...answer(call, SEARCH),
  headers: { Deprecation: 'true', Link: '</api/v1/search/search>; rel="successor-version"' },
})

/** No vectors here: a memory scores by the share of the query's words that it contains. */
function answer(call: Call, known: readonly string[]): Answer {
  const body = bodyOf(call)
  forbidExtra(body, known)
  const { query, limit = 10, mode = 'list' } = body
  if (typeof query !== 'string') throw invalid('body.query', 'Field required', 'missing')
  if (typeof limit !== 'number' || limit < 1) throw invalid('body.limit', 'Input should be greater than 0')
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const scored = call.world.memories
    .filter((memory) => memory.owner === ownerOf(call.who))
    .map((memory) => {
      const text = memory.text.toLowerCase()
      return { memory, score: words.filter((word) => text.includes(word)).length / Math.max(1, words.length) }
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
  const memories = scored.map(({ memory, score }) => ({
    context_type: 'memory',
    uri: memory.uri,
    level: 2,
    score,
    abstract: memory.text,
    tags: [],
  }))
  if (mode === 'context')
    return okBare({
      entries: memories,
      rendered: memories.map((each) => each.abstract).join('\n'),
      digest: '',
      stats: {},
    })
  return okBare({ memories, resources: [], skills: [], total: memories.length })
}
