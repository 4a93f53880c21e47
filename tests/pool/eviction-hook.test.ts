import { LRUCache } from 'lru-cache'
import { expect, test } from 'vitest'
import type { MemoryAgent } from '../../src/index.js'
import { evictionHook } from '../../src/pool/index.js'
import { faultyLedger, gate, recordingLogger, scriptedAgent } from '../../src/testing/index.js'
import { freshLedger } from '../support/ledgers.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

test('an agent that leaves somebody’s own lru-cache is flushed and closed, whatever made it leave', async () => {
  const { lifecycle } = await openLifecycle()
  const hook = evictionHook(lifecycle)
  const cache = new LRUCache<string, MemoryAgent>({ max: 2, dispose: hook })
  const agents = ['evicted', 'deleted', 'stays'].map((id) => ({ id, agent: scriptedAgent() }))
  for (const { id, agent } of agents) {
    cache.set(id, agent)
    await lifecycle.markTurnCompleted(id, { agent })
  }
  cache.delete('deleted')
  expect(hook.pending).toBe(2)
  expect(await hook.settled()).toEqual({ failed: 0 })
  expect(hook.pending).toBe(0)
  expect(agents.map(({ agent }) => [agent.seen.length, agent.closes])).toEqual([
    [1, 1],
    [1, 1],
    [0, 0],
  ])
})

test.each(['before', 'after'])(
  'an agent that is replaced in the cache is closed, and the new one, registered %s, is not',
  async (when) => {
    const { lifecycle } = await openLifecycle()
    const hook = evictionHook(lifecycle)
    const cache = new LRUCache<string, MemoryAgent>({ max: 2, dispose: hook })
    const [old, fresh] = [scriptedAgent(), scriptedAgent()]
    cache.set('s', old)
    await lifecycle.markTurnCompleted('s', { agent: old })
    if (when === 'before') lifecycle.registerAgent('s', fresh)
    cache.set('s', fresh)
    if (when === 'after') lifecycle.registerAgent('s', fresh)
    await hook.settled()
    expect([old.seen.length, old.closes, fresh.closes]).toEqual([1, 1, 0])
  },
)

test('B5: an agent that leaves the cache in the middle of a turn is closed after it', async () => {
  const { lifecycle } = await openLifecycle()
  const hook = evictionHook(lifecycle)
  const cache = new LRUCache<string, MemoryAgent>({ max: 1, dispose: hook })
  const agent = scriptedAgent()
  cache.set('s', agent)
  lifecycle.registerAgent('s', agent)
  const release = lifecycle.hold('s')
  cache.delete('s')
  await settle()
  expect([agent.closes, hook.pending]).toEqual([0, 1])
  await lifecycle.markTurnCompleted('s', { agent })
  release()
  await hook.settled()
  expect([agent.seen.length, agent.closes]).toEqual([1, 1])
})

test('D1: a drain waits for what the hook began, although the cache does not', async () => {
  const { lifecycle } = await openLifecycle()
  const hook = evictionHook(lifecycle)
  const cache = new LRUCache<string, MemoryAgent>({ max: 1, dispose: hook })
  const agent = scriptedAgent()
  const slow = gate()
  agent.script.push(slow.step)
  cache.set('s', agent)
  await lifecycle.markTurnCompleted('s', { agent })
  cache.clear()
  await slow.entered
  let isDrained = false
  const drained = lifecycle.drain().then((report) => {
    isDrained = true
    return report
  })
  await settle()
  expect(isDrained).toBe(false)
  slow.open()
  expect(await drained).toMatchObject({ committed: 1, remaining: [] })
  expect(await hook.settled()).toEqual({ failed: 0 })
  expect(agent.closes).toBe(1)
})

test('an eviction that fails is logged and counted; nothing is thrown into the cache', async () => {
  const ledger = faultyLedger(freshLedger())
  const { lifecycle } = await openLifecycle({ ledger })
  const logger = recordingLogger()
  const hook = evictionHook(lifecycle, { logger })
  const cache = new LRUCache<string, MemoryAgent>({ max: 1, dispose: hook })
  const agent = scriptedAgent()
  cache.set('s', agent)
  await lifecycle.markTurnCompleted('s', { agent })
  ledger.failNext = 1
  cache.delete('s')
  expect(await hook.settled()).toEqual({ failed: 1 })
  expect(logger.text()).toContain('LEDGER_FAILED')
  expect(agent.closes).toBe(0)
  expect(await lifecycle.drain()).toMatchObject({ committed: 1 })
})
