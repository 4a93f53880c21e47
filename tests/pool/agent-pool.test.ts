import { describe, expect, test } from 'vitest'
import { TidemarkError } from '../../src/index.js'
import { AgentPool } from '../../src/pool/index.js'
import {
  faultyLedger,
  gate,
  recordingLogger,
  type ScriptedAgent,
  scriptedAgent,
  steps,
} from '../../src/testing/index.js'
import { freshLedger } from '../support/ledgers.js'
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

describe('a session that comes back', () => {
  test('gets its agent back while it is being flushed, without waiting for the provider', async () => {
    const { pool, turn, created, lifecycle } = await openPool({ max: 1 })
    await turn('s')
    const agent = created.get('s')![0]!
    const slow = gate()
    agent.script.push(slow.step)
    await turn('other')
    await slow.entered
    expect(pool.evicting).toBe(1)
    expect(await pool.use('s', (served) => served)).toBe(agent)
    slow.open()
    await settle()
    expect(agent.closes).toBe(0)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect(created.get('s')).toEqual([agent])
  })

  test('waits for the end of an agent that is being closed, and gets a new one', async () => {
    const closing = latch()
    const { pool, turn, created } = await openPool({ max: 1 })
    await turn('s')
    const old = created.get('s')![0]!
    old.close = () => {
      old.closes += 1
      return closing.opened
    }
    await turn('other')
    await settle()
    expect(old.closes).toBe(1)
    let served: ScriptedAgent | undefined
    const use = pool.use('s', (agent) => {
      served = agent
    })
    await settle()
    expect(served).toBeUndefined()
    expect(created.get('s')).toHaveLength(1)
    closing.open()
    await use
    expect(served).toBe(created.get('s')?.[1])
    expect(old.closes).toBe(1)
  })

  test('after an eviction asked for by name gets a new agent', async () => {
    const { pool, turn, created } = await openPool()
    await turn('s')
    const slow = gate()
    created.get('s')![0]!.script.push(slow.step)
    const evicted = pool.evict('s')
    await slow.entered
    const use = pool.use('s', (agent) => agent)
    await settle()
    expect(created.get('s')).toHaveLength(1)
    slow.open()
    expect(await evicted).toEqual(CLEAN)
    expect(await use).toBe(created.get('s')?.[1])
  })

  test('while its turn runs joins the agent of that turn, and the eviction waits for both', async () => {
    const { pool, created } = await openPool()
    const [outer, inner] = [latch(), latch()]
    const one = pool.use('s', () => outer.opened)
    await settle()
    const evicted = pool.evict('s')
    const two = pool.use('s', () => inner.opened)
    outer.open()
    await one
    await settle()
    expect(created.get('s')).toMatchObject([{ closes: 0 }])
    inner.open()
    await two
    expect(await evicted).toEqual(CLEAN)
    expect(created.get('s')).toMatchObject([{ closes: 1 }])
  })

  test('B4: with work left, the lifecycle keeps the old agent as its owner and closes it when the work is done', async () => {
    const { pool, turn, created, lifecycle, clock } = await openPool({ max: 1 })
    await turn('s')
    const old = created.get('s')![0]!
    old.script.push(steps.reject(new Error('not now')))
    await turn('other')
    await settle()
    expect([pool.evicting, old.closes]).toEqual([0, 0])
    const fresh = await pool.use('s', (agent) => agent)
    expect(fresh).not.toBe(old)
    await clock.advance(60_000)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect([old.seen.length, old.closes, fresh.seen.length, fresh.closes]).toEqual([2, 1, 0, 0])
  })
})

describe('past the pool', () => {
  test('an agent that somebody evicted through the lifecycle is never handed out again, and is closed once', async () => {
    const { pool, turn, created, lifecycle } = await openPool()
    await turn('s')
    const evicted = lifecycle.evict('s')
    const served = await pool.use('s', (agent) => agent)
    expect(served.closes).toBe(0)
    await evicted
    await settle()
    const again = await pool.use('s', (agent) => agent)
    expect(again.closes).toBe(0)
    await pool.close()
    expect(created.get('s')?.map(({ closes }) => closes)).toEqual(created.get('s')?.map(() => 1))
  })

  test('an idle agent that somebody unregistered or discarded is evicted', async () => {
    const { pool, turn, created, lifecycle } = await openPool()
    await turn('u')
    await turn('d')
    lifecycle.unregisterAgent('u')
    await lifecycle.discard('d', { force: true })
    await settle()
    expect([created.get('u')?.[0]?.closes, created.get('d')?.[0]?.closes, pool.size]).toEqual([1, 1, 0])
  })

  test('an agent that was replaced during its eviction is not handed out again', async () => {
    const { pool, turn, created, lifecycle } = await openPool({ max: 1 })
    await turn('s')
    const old = created.get('s')![0]!
    const slow = gate()
    old.script.push(slow.step)
    await turn('other')
    await slow.entered
    const stranger = scriptedAgent()
    lifecycle.registerAgent('s', stranger)
    const use = pool.use('s', (agent) => agent)
    slow.open()
    const served = await use
    expect([served === old, old.closes, stranger.closes]).toEqual([false, 1, 0])
  })

  test('an agent that was replaced before its eviction is not handed out while it closes', async () => {
    const closing = latch()
    const { pool, turn, created, lifecycle } = await openPool({ max: 1 })
    const stranger = scriptedAgent()
    await pool.use('s', () => lifecycle.markTurnCompleted('s', { agent: stranger }))
    const old = created.get('s')![0]!
    old.close = () => {
      old.closes += 1
      return closing.opened
    }
    await turn('other')
    await settle()
    expect(old.closes).toBe(1)
    const use = pool.use('s', (agent) => agent)
    closing.open()
    expect(await use).toBe(created.get('s')?.[1])
    expect(stranger).toMatchObject({ closes: 0, seen: [{ sessionId: 's' }] })
  })

  test('B7: a rotated session keeps its agent under its new id, also in the middle of a turn', async () => {
    const { pool, created, lifecycle } = await openPool()
    const end = latch()
    const turn = pool.use('old', async (agent) => {
      await lifecycle.markTurnCompleted('old', { agent })
      await lifecycle.rotate('old', 'new')
      await end.opened
    })
    await settle()
    const agent = created.get('old')![0]!
    expect(await pool.use('new', (served) => served)).toBe(agent)
    const evicted = lifecycle.evict('new')
    await settle()
    expect(agent.closes).toBe(0)
    end.open()
    await turn
    await evicted
    await settle()
    expect([agent.closes, pool.size]).toEqual([1, 0])
    expect(agent.seen).toMatchObject([{ sessionId: 'old' }])
  })

  test('B7: a session that is rotated while it is being evicted gets its agent back under the new id', async () => {
    const { pool, turn, created, lifecycle } = await openPool({ max: 1 })
    await turn('old')
    const agent = created.get('old')![0]!
    const slow = gate()
    agent.script.push(slow.step)
    await turn('other')
    await slow.entered
    await lifecycle.rotate('old', 'new')
    expect(await pool.use('new', (served) => served)).toBe(agent)
    slow.open()
    await settle()
    await pool.close()
    expect(agent.closes).toBe(1)
  })
})

describe('a ledger that fails', () => {
  test('keeps an agent that could not be evicted, serves its session with it, and evicts it later', async () => {
    const ledger = faultyLedger(freshLedger())
    const logger = recordingLogger()
    const { pool, turn, created, lifecycle } = await openPool({ max: 1, logger, lifecycleOptions: { ledger } })
    await turn('s')
    ledger.failNext = 1
    await pool.use('other', () => undefined)
    await settle()
    expect(logger.text()).toContain('could not be evicted')
    expect([pool.size, pool.evicting, ledger.failNext]).toEqual([2, 0, 0])
    expect(await pool.use('s', (agent) => agent)).toBe(created.get('s')?.[0])
    await settle()
    expect(created.get('other')).toMatchObject([{ closes: 1 }])
    await pool.close()
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect(created.get('s')).toMatchObject([{ closes: 1 }])
  })

  test('does not keep the pool too big for good: who could not be evicted is tried again after the others', async () => {
    const ledger = faultyLedger(freshLedger())
    const { pool, turn, created } = await openPool({ max: 1, lifecycleOptions: { ledger } })
    await turn('s')
    ledger.failNext = 1
    await pool.use('other', () => undefined)
    await settle()
    expect(pool.size).toBe(2)
    await turn('third')
    await settle()
    expect([pool.size, pool.evicting]).toEqual([1, 0])
    expect(['s', 'other', 'third'].map((id) => created.get(id)?.[0]?.closes)).toEqual([1, 1, 0])
  })

  test('gives an agent whose eviction by name failed to the turn that waited for the end of it', async () => {
    const ledger = faultyLedger(freshLedger())
    const { pool, turn, created } = await openPool({ lifecycleOptions: { ledger } })
    await turn('s')
    ledger.failNext = 1
    const evicted = pool.evict('s')
    const use = pool.use('s', (agent) => agent)
    await expect(evicted).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    expect(await use).toBe(created.get('s')?.[0])
    expect(pool.size).toBe(1)
    // It has one place in the pool, not two: more turns at once than agents find nothing of it once it is closed.
    await Promise.all(['x', 'y', 'z'].map(turn))
    await Promise.all(['x', 'y', 'z'].map(turn))
    await pool.close()
    expect(created.get('s')).toMatchObject([{ closes: 1 }])
  })
})

describe('closing', () => {
  test('waits for running turns, evicts every agent, and takes no more turns', async () => {
    const { pool, turn, created, lifecycle } = await openPool({ max: 5 })
    await turn('idle')
    const end = latch()
    const running = pool.use('busy', async (agent) => {
      await end.opened
      await lifecycle.markTurnCompleted('busy', { agent })
    })
    await settle()
    const closed = pool.close()
    await expect(pool.use('late', () => 1)).rejects.toThrow(TidemarkError)
    await expect(pool.evict('idle')).rejects.toMatchObject({ code: 'CLOSED' })
    await settle()
    expect([created.get('idle')?.[0]?.closes, created.get('busy')?.[0]?.closes]).toEqual([1, 0])
    end.open()
    await running
    expect(await closed).toEqual({ closed: 2, left: 0 })
    expect(await pool.close()).toEqual({ closed: 2, left: 0 })
    expect(created.get('busy')).toMatchObject([{ closes: 1, seen: [{ from: 1, to: 1 }] }])
  })

  test('a signal ends the wait and says what is left; what is left is closed when its turn ends', async () => {
    const { pool, turn, created } = await openPool()
    await turn('idle')
    const end = latch()
    const running = pool.use('busy', () => end.opened)
    await settle()
    const controller = new AbortController()
    const closed = pool.close({ signal: controller.signal })
    await settle()
    controller.abort()
    expect(await closed).toEqual({ closed: 1, left: 1 })
    end.open()
    await running
    await settle()
    expect(created.get('busy')).toMatchObject([{ closes: 1 }])
  })

  test('its signal is handed to a creation that is under way', async () => {
    let given: AbortSignal | undefined
    const { pool } = await openPool({
      create: (_id, { signal }) => {
        given = signal
        return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('stopped'))))
      },
    })
    const use = pool.use('s', () => 1)
    use.catch(() => undefined)
    await settle()
    const controller = new AbortController()
    const closed = pool.close({ signal: controller.signal })
    controller.abort()
    expect(given?.aborted).toBe(true)
    await expect(use).rejects.toThrow('stopped')
    expect((await closed).closed).toBe(0)
  })

  test('B4: an agent that owns work stays open and counts as left', async () => {
    const { pool, turn, created } = await openPool()
    await turn('s')
    created.get('s')![0]!.otherwise = steps.reject(new Error('never'))
    expect(await pool.close()).toEqual({ closed: 0, left: 1 })
    expect(created.get('s')).toMatchObject([{ closes: 0 }])
  })

  test('`await using` closes it', async () => {
    const { pool, turn, created } = await openPool()
    await turn('s')
    await pool[Symbol.asyncDispose]()
    expect(created.get('s')).toMatchObject([{ closes: 1 }])
  })
})
