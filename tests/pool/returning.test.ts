import { describe, expect, test } from 'vitest'
import { gate, type ScriptedAgent, scriptedAgent, steps } from '../../src/testing/index.js'
import { settle } from '../support/lifecycle.js'
import { CLEAN, latch, openPool, pushOut } from './support.js'

describe('a session that comes back', () => {
  test('gets its agent back while it is being flushed, without waiting for the provider', async () => {
    const opened = await openPool({ max: 1 })
    const { pool, created, lifecycle } = opened
    const { agent, slow } = await pushOut(opened, 's')
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
    const opened = await openPool({ max: 1 })
    const { pool, lifecycle } = opened
    const { agent: old, slow } = await pushOut(opened, 's')
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
    const opened = await openPool({ max: 1 })
    const { pool, lifecycle } = opened
    const { agent, slow } = await pushOut(opened, 'old')
    await lifecycle.rotate('old', 'new')
    expect(await pool.use('new', (served) => served)).toBe(agent)
    slow.open()
    await settle()
    await pool.close()
    expect(agent.closes).toBe(1)
  })

  test.each(['idle', 'serving'])(
    'B7: an eviction of a session that is rotated (%s) closes its agent under the new id',
    async (when) => {
      const { pool, created, lifecycle } = await openPool()
      const [begun, end] = [latch(), latch()]
      const turn = pool.use('old', async (agent) => {
        await lifecycle.markTurnCompleted('old', { agent })
        begun.open()
        if (when === 'serving') await end.opened
      })
      await begun.opened
      if (when === 'idle') await turn
      const agent = created.get('old')![0]!
      const slow = gate()
      agent.script.push(slow.step)
      const evicted = pool.evict('old')
      if (when === 'idle') await slow.entered
      await lifecycle.rotate('old', 'new')
      end.open()
      await turn
      slow.open()
      await evicted
      await settle()
      expect([agent.closes, pool.size, pool.evicting]).toEqual([1, 0, 0])
      expect(agent.seen).toHaveLength(1)
    },
  )
})
