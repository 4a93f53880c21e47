import { describe, expect, it } from 'vitest'
import { openMemory } from './helpers.js'

const open = async () => {
  const memory = await openMemory()
  const call = async (name: string, args: unknown): Promise<Record<string, unknown>> =>
    JSON.parse(await memory.handleToolCall(name, args)) as Record<string, unknown>
  return { memory, call }
}

describe('tools for a model', () => {
  it('are described in the function format of OpenAI-compatible APIs', async () => {
    const { memory } = await open()
    const tools = memory.tools()
    expect(tools.map((tool) => [tool.type, tool.function.name, tool.function.parameters['required']])).toEqual([
      ['function', 'fact_store', ['action']],
      ['function', 'fact_feedback', ['action', 'fact_id']],
    ])
    expect(JSON.parse(JSON.stringify(tools))).toEqual(tools)
  })

  it('§2: offer the categories of the reference', async () => {
    const { memory } = await open()
    const { properties } = memory.tools()[0]!.function.parameters as { properties: { category: { enum: string[] } } }
    expect(properties.category.enum).toEqual(['user_pref', 'project', 'tool', 'general'])
  })

  it('every action of fact_store does what the method of that name does, with arguments as JSON text or as an object', async () => {
    const { memory, call } = await open()
    expect(
      await call(
        'fact_store',
        '{"action":"add","content":"Alice Smith uses Postgres","tags":"db, sql","category":"tool"}',
      ),
    ).toEqual({ id: 1, added: true })
    await call('fact_store', { action: 'add', content: 'Alice Smith uses MySQL' })
    const count = async (args: object) => (await call('fact_store', args))['count']
    expect(await count({ action: 'search', query: 'postgres', limit: 3, min_trust: 0, category: 'tool' })).toBe(1)
    expect(await count({ action: 'probe', entity: 'Alice Smith' })).toBe(2)
    expect(await count({ action: 'related', entity: 'mysql' })).toBe(1)
    expect(await count({ action: 'reason', entities: ['Alice Smith', 'MySQL'] })).toBe(1)
    expect(await count({ action: 'contradict' })).toBe(1)
    expect(await count({ action: 'list', limit: '1', category: null })).toBe(1)
    expect(await call('fact_store', { action: 'update', fact_id: 1, trust_delta: 0.1, tags: ['x'] })).toMatchObject({
      trust: 0.6,
      tags: ['x'],
    })
    expect(await call('fact_store', { action: 'remove', fact_id: 2 })).toEqual({ removed: true })
    expect(await memory.list()).toHaveLength(1)
  })

  it('fact_feedback moves the trust', async () => {
    const { memory, call } = await open()
    await memory.add('tea')
    expect(await call('fact_feedback', { action: 'helpful', fact_id: 1 })).toMatchObject({ trust: 0.55 })
    expect(await call('fact_feedback', '{"action":"unhelpful","fact_id":"1"}')).toMatchObject({
      trust: expect.closeTo(0.45) as number,
    })
  })

  it.each([
    ['no_such_tool', {}, 'no tool'],
    ['fact_store', {}, 'action must be one of'],
    ['fact_store', '{', 'no valid JSON'],
    ['fact_store', '[]', 'JSON object'],
    ['fact_store', null, 'JSON object'],
    ['fact_store', { action: 'add' }, 'content is missing'],
    ['fact_store', { action: 'add', content: 7 }, 'content must be'],
    ['fact_store', { action: 'search', query: 'x', limit: 0 }, 'limit must be'],
    ['fact_store', { action: 'search', query: 'x', limit: 'many' }, 'limit must be'],
    ['fact_store', { action: 'update', fact_id: 99 }, 'no fact 99'],
    ['fact_store', { action: 'reason', entities: [] }, 'entities must be'],
    ['fact_store', { action: 'remove' }, 'fact_id is missing'],
    ['fact_feedback', { action: 'maybe', fact_id: 1 }, 'action must be one of'],
  ])('%s with %j tells the model what is wrong', async (name, args, part) => {
    const { call } = await open()
    expect((await call(name, args))['error']).toContain(part)
  })

  it('results hold no vectors', async () => {
    const { memory, call } = await open()
    await memory.add('tea')
    expect(Object.keys((await call('fact_store', { action: 'list' }))['results'] as object)).toEqual(['0'])
    expect(JSON.stringify(await call('fact_store', { action: 'search', query: 'tea' }))).not.toContain('vector')
  })
})
