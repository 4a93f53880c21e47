import pino from 'pino'
import { describe, expect, test } from 'vitest'
import { type EventName, type LifecycleOptions, MemoryLifecycle } from '../../src/index.js'
import { gate, recordingLogger, scriptedAgent, steps } from '../../src/testing/index.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

const ALL: readonly EventName[] = [
  ...(['turn:recorded', 'commit:started', 'commit:accepted', 'commit:succeeded', 'commit:failed'] as const),
  ...(['commit:abandoned', 'receipt:settled', 'receipt:failed', 'segment:parked', 'agent:registered'] as const),
  ...(['agent:unregistered', 'agent:closed', 'session:rotated', 'session:discarded', 'session:recovered'] as const),
  ...(['drain:started', 'drain:progressed', 'drain:finished'] as const),
]

function listen(lifecycle: MemoryLifecycle): { name: EventName; event: Record<string, unknown> }[] {
  const heard: { name: EventName; event: Record<string, unknown> }[] = []
  for (const name of ALL) lifecycle.on(name, (event) => heard.push({ name, event: { ...event } }))
  return heard
}

describe('events', () => {
  test('V1: every transition is an event, in its order', async () => {
    const { lifecycle } = await openLifecycle()
    const heard = listen(lifecycle)
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await lifecycle.commit('s')
    await lifecycle.evict('s')
    expect(heard).toEqual([
      { name: 'agent:registered', event: { sessionId: 's', agentId: 'a' } },
      { name: 'turn:recorded', event: { sessionId: 's', generation: 1, owner: 'a' } },
      { name: 'commit:started', event: { sessionId: 's', from: 1, to: 1, owner: 'a', attempt: 1, reason: 'manual' } },
      {
        name: 'commit:failed',
        event: {
          ...{ sessionId: 's', from: 1, to: 1, owner: 'a', attempt: 1, reason: 'manual' },
          error: 'Error',
          retryAt: undefined,
        },
      },
      { name: 'commit:started', event: { sessionId: 's', from: 1, to: 1, owner: 'a', attempt: 2, reason: 'manual' } },
      {
        name: 'commit:succeeded',
        event: { sessionId: 's', from: 1, to: 1, owner: 'a', attempt: 2, reason: 'manual', late: false },
      },
      { name: 'agent:unregistered', event: { sessionId: 's', agentId: 'a' } },
      { name: 'agent:closed', event: { agentId: 'a' } },
    ])
  })

  test('V1: receipts, parking, abandoning, rotating, discarding and draining are seen', async () => {
    const { lifecycle, clock } = await openLifecycle({ retry: { attempts: 2 } })
    const heard = listen(lifecycle)
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.accept('r1'), steps.accept('r2'), steps.hang(), steps.reject(new Error('down')))
    agent.settleScript.push(steps.answer({ status: 'failed', error: new Error('x') }))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await clock.advance(10_000)
    await lifecycle.markTurnCompleted('s')
    void lifecycle.commit('s')
    await clock.advance(65_000)
    await lifecycle.commit('s')
    await lifecycle.rotate('s', 'next')
    await lifecycle.markTurnCompleted('next')
    await lifecycle.drain()
    await lifecycle.discard('s', { force: true })
    const names = new Set(heard.map(({ name }) => name))
    expect(ALL.filter((name) => !names.has(name)).sort()).toEqual([
      'agent:closed',
      'agent:unregistered',
      'session:recovered',
    ])
    expect(heard.find(({ name }) => name === 'segment:parked')?.event).toMatchObject({ from: 2, to: 2, attempt: 2 })
  })

  test('V1: a listener that throws is logged and hurts nobody; unsubscribing works', async () => {
    const logger = recordingLogger()
    const { lifecycle } = await openLifecycle({ logger })
    const heard: number[] = []
    lifecycle.on('turn:recorded', () => {
      throw new Error('bad listener')
    })
    const stop = lifecycle.on('turn:recorded', ({ generation }) => heard.push(generation))
    expect(await lifecycle.markTurnCompleted('s')).toBe(1)
    stop()
    expect(await lifecycle.markTurnCompleted('s')).toBe(2)
    expect(heard).toEqual([1])
    expect(logger.lines.filter(({ message }) => message === 'a listener threw')).toHaveLength(2)
    expect(() => lifecycle.on('turn:recorded', undefined as never)).toThrow(TypeError)
  })

  test('V1: a listener that is asynchronous and rejects is logged as well, and does not end the process', async () => {
    const logger = recordingLogger()
    const { lifecycle } = await openLifecycle({ logger })
    const strays: unknown[] = []
    const stray = (error: unknown): void => void strays.push(error)
    process.on('unhandledRejection', stray)
    try {
      lifecycle.on('turn:recorded', async () => {
        await settle(1)
        throw new Error('bad listener')
      })
      await lifecycle.markTurnCompleted('s')
      await settle()
    } finally {
      process.off('unhandledRejection', stray)
    }
    expect(strays).toEqual([])
    expect(logger.lines).toMatchObject([{ message: 'a listener threw', fields: { event: 'turn:recorded' } }])
  })

  test('V1: every event survives JSON', async () => {
    const { lifecycle } = await openLifecycle()
    const heard = listen(lifecycle)
    await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }), messages: ['text'] })
    await lifecycle.drain()
    for (const { event } of heard) expect(JSON.parse(JSON.stringify(event))).toEqual(event)
  })
})

describe('health and inspection', () => {
  test('V2: inspect and health say at any time what is dirty, in flight, unsettled, parked, and since when', async () => {
    const { lifecycle, clock } = await openLifecycle({ retry: { attempts: 1 } })
    expect(await lifecycle.health()).toEqual({
      ...{
        status: 'ok',
        dirtySessions: 0,
        oldestUncommittedAgeMs: undefined,
        inFlight: 0,
        longestInFlightMs: undefined,
      },
      ...{ unsettled: 0, parked: 0, lastSuccessAt: undefined, ledger: 'ok', reasons: [] },
    })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step, steps.accept('r'), steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('flying', { agent })
    const commit = lifecycle.commit('flying')
    await door.entered
    await lifecycle.markTurnCompleted('accepted', { agent })
    await lifecycle.commit('accepted')
    await lifecycle.markTurnCompleted('parked', { agent })
    await lifecycle.commit('parked')
    await clock.advance(400)
    const health = await lifecycle.health()
    expect(health).toMatchObject({ status: 'degraded', dirtySessions: 1, inFlight: 1, longestInFlightMs: 400 })
    expect(health).toMatchObject({ unsettled: 1, parked: 1, oldestUncommittedAgeMs: 400 })
    expect(health.reasons.join()).toContain('parked: 1')
    expect(await lifecycle.inspect('flying')).toMatchObject({ inFlight: true, segments: [{ state: 'claimed' }] })
    expect(await lifecycle.inspect('never seen')).toBeUndefined()
    door.open()
    await commit
    expect(await lifecycle.health()).toMatchObject({ lastSuccessAt: clock.now(), inFlight: 0 })
  })

  test('V2: sessions can be listed and filtered', async () => {
    const { lifecycle } = await openLifecycle({ retry: { attempts: 1 } })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.commit(), steps.reject(new Error('down')), steps.accept('r'))
    for (const sessionId of ['clean', 'parked', 'accepted', 'dirty']) {
      await lifecycle.markTurnCompleted(sessionId, { agent })
      if (sessionId !== 'dirty') await lifecycle.commit(sessionId)
    }
    const list = async (filter: Parameters<typeof lifecycle.sessions>[0]): Promise<string[]> => {
      const ids: string[] = []
      for await (const { sessionId } of lifecycle.sessions(filter)) ids.push(sessionId)
      return ids.sort()
    }
    expect(await list({})).toEqual(['accepted', 'clean', 'dirty', 'parked'])
    expect(await list({ uncommitted: true })).toEqual(['dirty', 'parked'])
    expect(await list({ uncommitted: false })).toEqual(['accepted', 'clean'])
    expect(await list({ parked: true })).toEqual(['parked'])
    expect(await list({ unsettled: true })).toEqual(['accepted'])
  })

  test('V2: the wait for a slot is not time in flight', async () => {
    const { lifecycle, clock } = await openLifecycle({ concurrency: 1 })
    const agent = scriptedAgent({ agentId: 'a' })
    const [first, second] = [gate(), gate()]
    agent.script.push(first.step, second.step)
    await lifecycle.markTurnCompleted('one', { agent })
    await lifecycle.markTurnCompleted('two', { agent })
    void lifecycle.commit('one')
    await first.entered
    void lifecycle.commit('two')
    await clock.advance(50_000)
    first.open()
    await second.entered
    await clock.advance(20_000)
    expect(await lifecycle.health()).toMatchObject({ inFlight: 1, longestInFlightMs: 20_000, status: 'ok' })
  })
})

describe('logs', () => {
  const SECRET = 'sk-live-0123456789'
  const TEXT = 'my mother was born in Lisbon'

  test('V3: neither message text nor a credential reaches a log, an event or a snapshot, whatever goes wrong', async () => {
    const lines: string[] = []
    const logger = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
    const { lifecycle, clock } = await openLifecycle({ logger, retry: { attempts: 2 } })
    const heard = listen(lifecycle)
    const leaky = (): Error =>
      Object.assign(new Error(`401 for ${SECRET}: ${TEXT}`), { code: `${SECRET} ${TEXT}`, body: TEXT })
    const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
    agent.script.push(
      steps.reject(leaky()),
      steps.answer(`${SECRET} ${TEXT}`),
      steps.accept(SECRET),
      steps.reject(SECRET),
    )
    agent.settleScript.push(steps.throwAtOnce(leaky()), steps.answer({ status: 'failed', error: leaky() }))
    agent.close = () => Promise.reject(leaky())
    lifecycle.on('turn:recorded', () => {
      throw leaky()
    })
    for (const sessionId of ['one', 'two'])
      await lifecycle.markTurnCompleted(sessionId, { agent, messages: [TEXT, SECRET] })
    await lifecycle.commit('one')
    await lifecycle.commit('one')
    await lifecycle.commit('two')
    await clock.advance(600_000)
    await lifecycle.evict('two')
    await lifecycle.drain()
    const snapshots = await Promise.all([lifecycle.inspect('one'), lifecycle.inspect('two'), lifecycle.health()])
    const everything = JSON.stringify([lines, heard, snapshots])
    expect(lines.length).toBeGreaterThan(4)
    expect(everything).not.toContain(SECRET)
    expect(everything).not.toContain('Lisbon')
  })

  test('V3: describeError lets a host that knows its providers say more', async () => {
    const { lifecycle } = await openLifecycle({ describeError: (error) => `told: ${(error as Error).message}` })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('quota exceeded')) })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ error: 'told: quota exceeded' }] })
  })
})

describe('options', () => {
  const nonsense: readonly [string, unknown][] = [
    ['an unknown name', { conccurency: 3 }],
    ['concurrency 0', { concurrency: 0 }],
    ['a fraction', { concurrency: 1.5 }],
    ['a negative time', { commitTimeoutMs: -1 }],
    ['a time that is not a number', { abandonGraceMs: 'soon' }],
    ['NaN', { settleTimeoutMs: Number.NaN }],
    ['no attempts', { retry: { attempts: 0 } }],
    ['delays the wrong way round', { retry: { minDelayMs: 10, maxDelayMs: 5 } }],
    ['an unknown order', { order: 'random' }],
    ['zero turns', { boundaries: { maxTurns: 0 } }],
  ]
  test.each(nonsense)('%s is refused when it is opened', async (_name, options) => {
    await expect(MemoryLifecycle.open(options as LifecycleOptions)).rejects.toThrow(TypeError)
  })

  test('the caller’s options are not written to', async () => {
    const options = Object.freeze({ retry: Object.freeze({ attempts: 3 }), boundaries: Object.freeze({ idleMs: 5 }) })
    const lifecycle = await MemoryLifecycle.open(options)
    await lifecycle.close()
    expect(options).toEqual({ retry: { attempts: 3 }, boundaries: { idleMs: 5 } })
  })

  test('an agent without commitMemorySession is refused before anything is recorded', async () => {
    const { lifecycle } = await openLifecycle()
    await expect(lifecycle.markTurnCompleted('s', { agent: {} as never })).rejects.toThrow(/commitMemorySession/)
    expect(() => lifecycle.registerAgent('s', undefined as never)).toThrow(TypeError)
    await expect(lifecycle.commit('s', { agent: {} as never })).rejects.toThrow(TypeError)
    await settle()
    expect(await lifecycle.inspect('s')).toBeUndefined()
  })
})
