import { describe, expect, test } from 'vitest'
import { AgentPool } from '../../src/pool/index.js'
import { type ScriptedAgent, scriptedAgent, steps } from '../../src/testing/index.js'
import { openLifecycle, settle } from '../support/lifecycle.js'
import { CLEAN, latch, openPool } from './support.js'

describe('serving', () => {
  test('a session is created once and served by the same agent until it is evicted', async () => {
    const { pool, created, lifecycle } = await openPool()
    const [first, second] = await Promise.all([pool.use('s', (agent) => agent), pool.use('s', (agent) => agent)])
    expect(first).toBe(second)
    expect(await pool.use('s', (agent) => agent)).toBe(first)
    expect(created.get('s')).toEqual([first])
    await lifecycle.markTurnCompleted('s')
    expect(await pool.evict('s')).toEqual(CLEAN)
    expect(first.seen).toMatchObject([{ from: 1, to: 1, reason: 'evict' }])
    expect(await pool.use('s', (agent) => agent)).not.toBe(first)
  })

  test('the agent is registered while it serves, also if somebody unregistered it before', async () => {
    const { pool, lifecycle } = await openPool({ create: () => scriptedAgent({ agentId: 'mine' }) })
    await pool.use('s', async () => {
      lifecycle.unregisterAgent('s')
      await pool.use('s', () => undefined)
    })
    await pool.use('s', async () => {
      expect(await lifecycle.inspect('s')).toMatchObject({ agentId: 'mine' })
    })
  })

  test('what a turn returns or throws is what its caller gets, and its agent is free afterwards', async () => {
    const { pool, created } = await openPool()
    expect(await pool.use('s', () => 7)).toBe(7)
    await expect(pool.use('s', () => Promise.reject(new RangeError('no')))).rejects.toThrow(RangeError)
    expect(await pool.evict('s')).toEqual(CLEAN)
    expect(created.get('s')?.[0]?.closes).toBe(1)
  })

  test('a creation that fails is told to everybody who waits for it, and the next turn tries again', async () => {
    let tries = 0
    const { pool } = await openPool({
      create: () => {
        tries += 1
        if (tries === 1) throw new RangeError('no agent today')
        return scriptedAgent()
      },
    })
    const both = await Promise.allSettled([pool.use('s', () => 1), pool.use('s', () => 2)])
    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect([tries, pool.size]).toEqual([1, 0])
    expect(await pool.use('s', () => 3)).toBe(3)
  })

  test('something that is no agent is refused with a TypeError', async () => {
    const { pool } = await openPool({ create: () => ({}) as ScriptedAgent })
    await expect(pool.use('s', () => 1)).rejects.toThrow('commitMemorySession')
    expect(pool.size).toBe(0)
  })

  test('a signal ends the wait for an agent; the agent that comes later is kept for the next turn', async () => {
    const made = latch()
    const agent = scriptedAgent()
    const { pool } = await openPool({ create: () => made.opened.then(() => agent) })
    const controller = new AbortController()
    const use = pool.use('s', () => 1, { signal: controller.signal })
    controller.abort()
    await expect(use).rejects.toMatchObject({ code: 'ABORTED' })
    made.open()
    await settle()
    expect(pool.size).toBe(1)
    expect(await pool.use('s', (served) => served)).toBe(agent)
  })

  test('an agent that nobody waited for any more when it came is evicted like any other', async () => {
    const made = latch()
    const agent = scriptedAgent()
    const { pool } = await openPool({
      max: 1,
      create: (sessionId) => (sessionId === 's' ? made.opened.then(() => agent) : scriptedAgent()),
    })
    await expect(pool.use('s', () => 1, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'ABORTED' })
    made.open()
    await settle()
    await pool.use('other', () => 1)
    await settle()
    expect([pool.size, agent.closes]).toEqual([1, 1])
  })

  test.each([undefined, null, '', 7, 'x'.repeat(513), 'a\u0000b'])('%j as a session id is a TypeError', async (bad) => {
    const { pool } = await openPool()
    await expect(pool.use(bad as string, () => 1)).rejects.toThrow(TypeError)
    expect(pool.size).toBe(0)
  })

  test('L1: evicting no session is a safe no-op', async () => {
    const { pool } = await openPool()
    expect(await pool.evict('')).toEqual({ closed: false, clean: true, remaining: [] })
  })

  test.each([
    [{ max: 0 }, 'max'],
    [{ max: 1.5 }, 'max'],
    [{ max: undefined }, 'max'],
    [{ idleMs: -1 }, 'idleMs'],
    [{ create: undefined }, 'create'],
    [{ lifecycle: {} }, 'lifecycle'],
    [{ size: 3 }, "no option 'size'"],
  ])('nonsense is refused at construction: %j', async (nonsense, said) => {
    const { lifecycle } = await openLifecycle()
    const options = { lifecycle, create: () => scriptedAgent(), max: 1, ...nonsense }
    expect(() => new AgentPool(options as never)).toThrow(TypeError)
    expect(() => new AgentPool(options as never)).toThrow(said)
  })
})

describe('capacity', () => {
  test('the session that was idle longest is evicted: flushed, then closed', async () => {
    const { pool, created, turn, lifecycle } = await openPool({ max: 2 })
    await turn('a')
    await turn('b')
    await turn('a')
    await turn('c')
    expect(pool.size).toBe(2)
    await settle()
    expect(pool.evicting).toBe(0)
    expect(['a', 'b', 'c'].map((id) => created.get(id)?.[0]?.closes)).toEqual([0, 1, 0])
    expect(await lifecycle.hasUncommittedWork('b')).toBe(false)
  })

  test('B5: a pool whose agents all serve grows beyond its size, and shrinks as their turns end', async () => {
    const { pool, created } = await openPool({ max: 2 })
    const ends = ['a', 'b', 'c', 'd'].map((id) => ({ id, end: latch() }))
    const turns = ends.map(({ id, end }) => pool.use(id, () => end.opened))
    await settle()
    expect([pool.size, pool.evicting]).toEqual([4, 0])
    for (const [index, { end }] of ends.entries()) {
      end.open()
      await turns[index]
      await settle()
      expect(pool.size).toBe([3, 2, 2, 2][index])
    }
    expect(['a', 'b', 'c', 'd'].map((id) => created.get(id)?.[0]?.closes)).toEqual([1, 1, 0, 0])
  })

  test('C8: nobody waits for an eviction: turns of other sessions go on while a provider hangs', async () => {
    const { pool, turn, created } = await openPool({ max: 1 })
    await turn('slow')
    created.get('slow')![0]!.otherwise = steps.hang()
    for (const id of ['a', 'b', 'c']) await turn(id)
    await settle()
    expect([pool.size, pool.evicting]).toEqual([1, 1])
    expect(created.get('slow')?.[0]?.closes).toBe(0)
  })

  test('an agent that served nobody for idleMs is evicted, and one that served meanwhile is not', async () => {
    const { pool, turn, created, clock } = await openPool({ max: 10, idleMs: 1_000 })
    await turn('a')
    await clock.advance(600)
    await turn('b')
    await turn('c')
    await clock.advance(300)
    await turn('c')
    expect(clock.pending).toBe(1)
    await clock.advance(100)
    expect(['a', 'b', 'c'].map((id) => created.get(id)?.[0]?.closes)).toEqual([1, 0, 0])
    await clock.advance(600)
    expect(['a', 'b', 'c'].map((id) => created.get(id)?.[0]?.closes)).toEqual([1, 1, 0])
    await clock.advance(300)
    expect(pool.size).toBe(0)
    expect(clock.pending).toBe(0)
  })

  test('an agent in use is not evicted by its idle time', async () => {
    const { pool, created, clock } = await openPool({ idleMs: 1_000 })
    const end = latch()
    const turn = pool.use('s', () => end.opened)
    await clock.advance(5_000)
    expect(created.get('s')?.[0]?.closes).toBe(0)
    end.open()
    await turn
    await clock.advance(999)
    expect(pool.size).toBe(1)
    await clock.advance(1)
    expect(created.get('s')?.[0]?.closes).toBe(1)
  })
})
