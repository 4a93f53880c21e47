import { describe, expect, test } from 'vitest'
import { TidemarkError } from '../../src/index.js'
import { faultyLedger, recordingLogger, steps } from '../../src/testing/index.js'
import { freshLedger } from '../support/ledgers.js'
import { settle } from '../support/lifecycle.js'
import { latch, openPool } from './support.js'

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
    // It has one place in the pool, not two: once it is closed, a pool that looks for victims finds nothing of it.
    for (const id of ['x', 'y']) await turn(id)
    await settle()
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
