import { describe, expect, test } from 'vitest'
import { allSegments, hasUncommittedWork } from '../../src/core/index.js'
import { MemoryLifecycle } from '../../src/index.js'
import { faultyLedger, gate, manualClock, scriptedAgent, steps } from '../../src/testing/index.js'
import { failAt } from '../support/fail-at.js'
import { freshLedger } from '../support/ledgers.js'
import { openLifecycle, settle, tick } from '../support/lifecycle.js'
import { persistentLedger } from '../support/persistent-ledger.js'

describe('drain', () => {
  test('D1: drain commits every dirty session and waits for commits under way', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('first', { agent })
    lifecycle.switchSession('first', 'next')
    await door.entered
    for (let index = 0; index < 20; index += 1) await lifecycle.markTurnCompleted(`s${index}`, { agent })
    const drained = lifecycle.drain()
    await settle()
    door.open()
    expect(await drained).toMatchObject({ committed: 21, failed: 0, parked: 0, remaining: [], timedOut: false })
    expect(await lifecycle.health()).toMatchObject({ dirtySessions: 0 })
  })

  test('D1: turns recorded while it runs are flushed too, even behind a hung session', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const hung = scriptedAgent({ agentId: 'hung', provider: 'hung', otherwise: steps.hang() })
    const agent = scriptedAgent({ agentId: 'a', provider: 'good' })
    await lifecycle.markTurnCompleted('hung', { agent: hung })
    await lifecycle.markTurnCompleted('s', { agent })
    const drained = lifecycle.drain({ deadlineMs: 20_000 })
    await settle()
    expect(agent.seen).toHaveLength(1)
    await lifecycle.markTurnCompleted('s')
    await lifecycle.markTurnCompleted('late', { agent })
    await settle()
    expect(agent.seen).toHaveLength(3)
    await clock.advance(20_000)
    expect(await drained).toMatchObject({
      committed: 3,
      timedOut: true,
      remaining: [{ sessionId: 'hung', from: 1, to: 1, reason: 'in-flight' }],
    })
  })

  test('D2: a hundred hung sessions of one provider do not keep fifty of another from being committed', async () => {
    for (const order of ['hung first', 'healthy first'] as const) {
      const { lifecycle, clock } = await openLifecycle({ concurrency: 32 })
      const hung = scriptedAgent({ agentId: 'hung', provider: 'hung', otherwise: steps.hang() })
      const good = scriptedAgent({ agentId: 'good', provider: 'good' })
      const mark = async (agent: typeof hung, count: number): Promise<void> => {
        for (let index = 0; index < count; index += 1)
          await lifecycle.markTurnCompleted(`${agent.agentId!}-${index}`, { agent })
      }
      await mark(order === 'hung first' ? hung : good, order === 'hung first' ? 100 : 50)
      await mark(order === 'hung first' ? good : hung, order === 'hung first' ? 50 : 100)
      const drained = lifecycle.drain({ deadlineMs: 20_000 })
      await clock.advance(20_000)
      const report = await drained
      expect(report.committed).toBe(50)
      expect(report.remaining).toHaveLength(100)
      expect(report.remaining.every(({ sessionId }) => sessionId.startsWith('hung-'))).toBe(true)
      expect(new Set(report.remaining.map(({ reason }) => reason))).toEqual(new Set(['in-flight', 'not-started']))
    }
  })

  test('D2: while others wait one provider holds at most half of the slots; alone it may hold all', async () => {
    const { lifecycle } = await openLifecycle({ concurrency: 4 })
    const [one, other] = [
      scriptedAgent({ agentId: 'one', provider: 'one' }),
      scriptedAgent({ agentId: 'other', provider: 'other' }),
    ]
    one.otherwise = steps.hang()
    other.otherwise = steps.hang()
    for (let index = 0; index < 8; index += 1) await lifecycle.markTurnCompleted(`one-${index}`, { agent: one })
    for (let index = 0; index < 8; index += 1) await lifecycle.markTurnCompleted(`other-${index}`, { agent: other })
    const stop = new AbortController()
    const drained = lifecycle.drain({ signal: stop.signal })
    await settle()
    expect([one.seen.length, other.seen.length]).toEqual([2, 2])
    stop.abort()
    const alone = await openLifecycle({ concurrency: 4 })
    const solo = scriptedAgent({ agentId: 'solo', provider: 'solo', otherwise: steps.hang() })
    for (let index = 0; index < 8; index += 1) await alone.lifecycle.markTurnCompleted(`s-${index}`, { agent: solo })
    void alone.lifecycle.drain()
    await settle()
    expect(solo.seen).toHaveLength(4)
    void drained
  })

  test('D3: drain returns by its deadline, always; signals are aborted one grace period before it', async () => {
    const { lifecycle, clock } = await openLifecycle({ abandonGraceMs: 5_000 })
    const deaf = scriptedAgent({ agentId: 'deaf', provider: 'deaf', otherwise: steps.hang() })
    const polite = scriptedAgent({ agentId: 'polite', provider: 'polite', otherwise: steps.obey() })
    await lifecycle.markTurnCompleted('deaf', { agent: deaf })
    await lifecycle.markTurnCompleted('polite', { agent: polite })
    const drained = lifecycle.drain({ deadlineMs: 20_000 })
    await clock.advance(14_999)
    expect(deaf.seen[0]?.signal.aborted).toBe(false)
    await clock.advance(1)
    expect(deaf.seen[0]?.signal.aborted).toBe(true)
    await clock.advance(5_000)
    const report = await drained
    expect(report).toMatchObject({ committed: 0, timedOut: true, durationMs: 20_000 })
    expect(report.remaining).toEqual([
      { sessionId: 'deaf', from: 1, to: 1, reason: 'in-flight' },
      { sessionId: 'polite', from: 1, to: 1, reason: 'in-flight' },
    ])
    // An abort by shutdown gives its attempt back.
    expect(await lifecycle.inspect('polite')).toMatchObject({ segments: [{ state: 'dirty', attempts: 0 }] })
  })

  test('D3: a deadline shorter than the grace period, and one of nothing, are kept too', async () => {
    for (const deadlineMs of [1_000, 1, 0]) {
      const { lifecycle, clock } = await openLifecycle()
      await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a', otherwise: steps.hang() }) })
      const drained = lifecycle.drain({ deadlineMs })
      await clock.advance(deadlineMs)
      expect(await drained).toMatchObject({ timedOut: true, remaining: [{ sessionId: 's' }] })
    }
  })

  test('D3: what is parked or unowned is reported with its reason', async () => {
    const { lifecycle } = await openLifecycle({ retry: { attempts: 1 } })
    const bad = scriptedAgent({ agentId: 'bad', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('parked', { agent: bad })
    await lifecycle.markTurnCompleted('unowned')
    expect(await lifecycle.drain()).toMatchObject({
      parked: 1,
      timedOut: false,
      remaining: [
        { sessionId: 'parked', reason: 'parked' },
        { sessionId: 'unowned', reason: 'unowned' },
      ],
    })
  })

  test('D4: while draining no new background work starts; marks and commits are accepted; afterwards it goes on', async () => {
    const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 1_000 } })
    const agent = scriptedAgent({ agentId: 'a', provider: 'good', otherwise: steps.accept('r') })
    const hung = scriptedAgent({ agentId: 'hung', provider: 'hung', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('hung', { agent: hung })
    await lifecycle.markTurnCompleted('s', { agent })
    const drained = lifecycle.drain({ deadlineMs: 10_000 })
    await clock.advance(4_000)
    expect(agent.settled).toEqual([])
    expect(await lifecycle.markTurnCompleted('other', { agent })).toBe(1)
    expect((await lifecycle.commit('other', { wait: true })).status).toMatch(/accepted|clean/)
    await clock.advance(6_000)
    expect(await drained).toMatchObject({ accepted: 2, timedOut: true })
    await clock.advance(2_000)
    expect(agent.settled).toHaveLength(2)
  })

  test('D5: a failing session is tried again within the deadline; drain ends early when nothing can progress', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const flaky = scriptedAgent({ agentId: 'flaky', provider: 'flaky' })
    flaky.script.push(steps.reject(new Error('down')), steps.reject(new Error('down')))
    const dead = scriptedAgent({ agentId: 'dead', provider: 'dead', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('flaky', { agent: flaky })
    await lifecycle.markTurnCompleted('dead', { agent: dead })
    const drained = lifecycle.drain({ deadlineMs: 15_000 })
    await clock.advance(9_999)
    const report = await drained
    expect(report).toMatchObject({
      committed: 1,
      failed: 1,
      timedOut: false,
      remaining: [{ sessionId: 'dead', reason: 'failing' }],
    })
    expect(report.durationMs).toBeLessThan(9_999)
    expect(flaky.seen).toHaveLength(3)
  })

  test('D5: a segment in a long backoff is tried at once when the process ends', async () => {
    const { lifecycle } = await openLifecycle({ retry: { minDelayMs: 300_000 } })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.switchSession('s', 'next')
    await settle()
    expect(await lifecycle.drain()).toMatchObject({ committed: 1, remaining: [] })
  })

  test('D5: an agent that registers during the drain takes its work with it', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const hung = scriptedAgent({ agentId: 'hung', provider: 'hung', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('hung', { agent: hung })
    await lifecycle.markTurnCompleted('s')
    const drained = lifecycle.drain()
    await settle()
    lifecycle.registerAgent('s', scriptedAgent({ agentId: 'a' }))
    await clock.advance(20_000)
    expect(await drained).toMatchObject({ committed: 1, remaining: [{ sessionId: 'hung' }] })
  })

  test('D1: a drain of nothing returns at once; nonsense is refused', async () => {
    const { lifecycle } = await openLifecycle()
    expect(await lifecycle.drain()).toMatchObject({ committed: 0, remaining: [], timedOut: false })
    await expect(lifecycle.drain({ deadlineMs: -1 })).rejects.toThrow(TypeError)
    await expect(lifecycle.drain({ concurrency: 0 })).rejects.toThrow(TypeError)
  })

  test.each([
    ['failNext', 'committed', steps.commit(), { committed: 5 }],
    ['loseNext', 'committed', steps.commit(), { committed: 5 }],
    ['failNext', 'accepted', steps.accept('r'), { committed: 4, accepted: 1 }],
    ['failNext', 'parked', steps.reject({ retryable: false }), { committed: 4, parked: 1 }],
  ] as const)('D3: a ledger that fails once (%s) costs the drain nothing (%s)', async (how, _name, step, counts) => {
    for (let position = 0; position < 40; position += 1) {
      const ledger = faultyLedger(freshLedger())
      const { lifecycle, clock } = await openLifecycle({ ledger })
      const agent = scriptedAgent({ agentId: 'a' })
      agent.script.push(step)
      for (let index = 0; index < 5; index += 1) await lifecycle.markTurnCompleted(`s${index}`, { agent })
      const callOff = failAt(ledger, position, how)
      const drained = lifecycle.drain()
      await clock.advance(20_000)
      callOff()
      expect(await drained, `position ${position}`).toMatchObject({ ...counts, timedOut: false })
      expect([await lifecycle.health(), agent.seen.length]).toMatchObject([{ dirtySessions: 0 }, 5])
    }
  })

  test('D3: the caller’s signal ends the drain at once; deaf providers are left, polite ones get their attempt back', async () => {
    const { lifecycle } = await openLifecycle()
    const deaf = scriptedAgent({ agentId: 'deaf', provider: 'deaf', otherwise: steps.hang() })
    const polite = scriptedAgent({ agentId: 'polite', provider: 'polite', otherwise: steps.obey() })
    await lifecycle.markTurnCompleted('deaf', { agent: deaf })
    await lifecycle.markTurnCompleted('polite', { agent: polite })
    const stop = new AbortController()
    const drained = lifecycle.drain({ signal: stop.signal })
    await settle()
    stop.abort()
    expect(await drained).toMatchObject({
      timedOut: true,
      remaining: [
        { sessionId: 'deaf', reason: 'in-flight' },
        { sessionId: 'polite', reason: 'in-flight' },
      ],
    })
    expect(deaf.seen[0]?.signal.aborted).toBe(true)
    await settle()
    expect(await lifecycle.inspect('polite')).toMatchObject({ segments: [{ state: 'dirty', attempts: 0 }] })
  })

  test('D1: a turn that is recorded during the last look is waited for', async () => {
    const ledger = persistentLedger()
    const { lifecycle } = await openLifecycle({ ledger })
    await settle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    let look: () => void = () => undefined
    ledger.gates.push(() => new Promise((resolve) => (look = resolve)))
    const reports: unknown[] = []
    void lifecycle.drain().then((report) => reports.push(report))
    await settle()
    await lifecycle.markTurnCompleted('s', { agent })
    await door.entered
    look()
    await settle()
    expect(reports).toEqual([])
    door.open()
    await settle()
    expect(reports).toMatchObject([{ committed: 1, remaining: [] }])
  })

  test('D3: what somebody else committed meanwhile is not reported as remaining', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const hung = scriptedAgent({ agentId: 'hung', provider: 'hung', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('hung', { agent: hung })
    await lifecycle.markTurnCompleted('s')
    const drained = lifecycle.drain()
    await settle()
    expect(await lifecycle.commit('s', { agent: scriptedAgent() })).toMatchObject({ status: 'committed' })
    await clock.advance(20_000)
    expect((await drained).remaining).toEqual([{ sessionId: 'hung', from: 1, to: 1, reason: 'in-flight' }])
  })

  test('D3: a turn recorded when nothing new is begun any more is reported as remaining', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('hung', { agent })
    const drained = lifecycle.drain()
    await clock.advance(16_000)
    await lifecycle.markTurnCompleted('late', { agent })
    await clock.advance(4_000)
    expect((await drained).remaining).toMatchObject([
      { sessionId: 'hung' },
      { sessionId: 'late', reason: 'not-started' },
    ])
  })

  test('D3: a turn recorded during a backoff is not counted twice', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')), async () => {
      await new Promise<void>((resolve) => clock.setTimer(resolve, 10))
    })
    await lifecycle.markTurnCompleted('s', { agent })
    const drained = lifecycle.drain()
    await settle()
    await lifecycle.markTurnCompleted('s')
    await settle()
    await lifecycle.markTurnCompleted('s')
    await settle()
    await clock.advance(20_000)
    expect(agent.seen.map(({ from, to }) => [from, to])).toEqual([
      [1, 1],
      [1, 1],
      [2, 3],
    ])
    expect(await drained).toMatchObject({ committed: 2, remaining: [] })
  })

  test('D4: what the end of a drain cut short is taken up again when the process goes on', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.obey())
    await lifecycle.markTurnCompleted('s', { agent })
    const drained = lifecycle.drain({ deadlineMs: 10_000 })
    await clock.advance(10_000)
    await drained
    await clock.advance(600_000)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  })

  test('D3: work whose owner cannot be revived is reported as unowned', async () => {
    const { lifecycle } = await openLifecycle({ revive: () => undefined })
    await lifecycle.markTurnCompleted('s')
    expect((await lifecycle.drain()).remaining).toEqual([{ sessionId: 's', from: 1, to: 1, reason: 'unowned' }])
    expect((await lifecycle.evict('s')).remaining).toEqual([{ from: 1, to: 1, reason: 'unowned' }])
  })

  test('D3: ownerless work that the current agent would take is not reported as unowned', async () => {
    const { lifecycle } = await openLifecycle()
    await lifecycle.markTurnCompleted('s')
    lifecycle.registerAgent('s', scriptedAgent())
    const report = await lifecycle.drain({ signal: AbortSignal.abort() })
    expect(report.remaining).toEqual([{ sessionId: 's', from: 1, to: 1, reason: 'not-started' }])
  })
})

// eslint-disable-next-line require-yield
async function* failing(): AsyncGenerator<never> {
  await Promise.reject(new Error('away'))
}

describe('close', () => {
  test('D7: close aborts running calls, waits for no provider, drops late answers, and is idempotent', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    const seen = await door.entered
    const closing = lifecycle.close()
    expect(lifecycle.close()).toBe(closing)
    await closing
    expect(seen.signal.aborted).toBe(true)
    expect(await commit).toEqual({ status: 'aborted' })
    door.open()
    await settle()
    expect(await lifecycle.health()).toMatchObject({ status: 'unhealthy', reasons: ['closed', 'ledger: closed'] })
  })

  test('D7: every later call fails with the code CLOSED; what ends something stays harmless', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('s', agent)
    const release = lifecycle.hold('s')
    const unsubscribe = lifecycle.on('turn:recorded', () => undefined)
    await lifecycle.close()
    const calls: (() => unknown)[] = [
      () => lifecycle.registerAgent('s', agent),
      () => lifecycle.unregisterAgent('s'),
      () => lifecycle.markTurnCompleted('s'),
      () => lifecycle.markTurnCompleted('s', { ephemeral: true }),
      () => lifecycle.retractTurns('s', 1),
      () => lifecycle.hasUncommittedWork('s'),
      () => lifecycle.commit('s'),
      () => lifecycle.flush('s'),
      () => lifecycle.switchSession('s', 'next'),
      () => lifecycle.evict('s'),
      () => lifecycle.hold('s'),
      () => lifecycle.rotate('s', 'next'),
      () => lifecycle.discard('s'),
      () => lifecycle.retryParked(),
      () => lifecycle.drain(),
      () => lifecycle.inspect('s'),
      () => lifecycle.sessions()[Symbol.asyncIterator]().next(),
      () => lifecycle.on('turn:recorded', () => undefined),
    ]
    for (const call of calls) {
      const attempt = async (): Promise<unknown> => call()
      await expect(attempt(), String(call)).rejects.toMatchObject({ code: 'CLOSED' })
    }
    release()
    unsubscribe()
    lifecycle.unregisterAgent('')
    expect(await lifecycle.markTurnCompleted('')).toBe(0)
  })

  test('D7: close starts nothing new and leaves no timer behind', async () => {
    const clock = manualClock()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    {
      await using lifecycle = await MemoryLifecycle.open({ clock, ledger: freshLedger() })
      await lifecycle.markTurnCompleted('s', { agent })
      lifecycle.switchSession('s', 'next')
      await settle()
    }
    expect(agent.seen).toHaveLength(1)
    await clock.advance(3_600_000)
    expect(agent.seen).toHaveLength(1)
    expect(clock.pending).toBe(0)
  })

  test('D7: a drain that is running when it is closed returns with its report', async () => {
    const { lifecycle } = await openLifecycle()
    await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a', otherwise: steps.hang() }) })
    const drained = lifecycle.drain()
    await settle()
    await lifecycle.close()
    expect(await drained).toMatchObject({ timedOut: true, remaining: [{ sessionId: 's' }] })
  })

  test('D7: close leaves no timer behind, even if a call hangs', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('s', { agent })
    void lifecycle.commit('s')
    await settle()
    await lifecycle.close()
    await settle()
    expect(clock.pending).toBe(0)
  })

  test('D7: close leaves no timer behind, even if an agent hangs in close', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const [evicted, held] = [scriptedAgent({ agentId: 'evicted' }), scriptedAgent({ agentId: 'held' })]
    evicted.close = () => new Promise(() => undefined)
    held.close = () => new Promise(() => (held.closes += 1))
    lifecycle.registerAgent('one', evicted)
    lifecycle.registerAgent('two', held)
    lifecycle.registerAgent('three', held)
    const release = lifecycle.hold('three')
    void lifecycle.evict('one')
    await lifecycle.evict('two')
    lifecycle.unregisterAgent('three')
    await settle()
    await lifecycle.close()
    release()
    expect(held.closes).toBe(1)
    await settle()
    expect(clock.pending).toBe(0)
  })

  test('D7: close leaves no timer behind, even if the ledger is away', async () => {
    const ledger = faultyLedger(persistentLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger: { ...ledger, sessions: () => failing() } })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.failNext = 1_000
    door.open()
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    await lifecycle.close()
    expect(clock.pending).toBe(0)
  })

  test('D7, C14: an answer that is kept is recorded by close if the ledger is back, so nothing is offered twice', async () => {
    const inner = freshLedger()
    const ledger = faultyLedger({ ...persistentLedger(inner) })
    const { lifecycle } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.failNext = 1
    door.open()
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    await lifecycle.close()
    const { result } = await inner.transact('s', (state) => ({ state, result: hasUncommittedWork(state), events: [] }))
    expect(result).toBe(false)
    await inner.close()
  })

  test('D7, C12: whenever it is closed, an attempt that reached no provider, or was cut short, is given back', async () => {
    for (let moment = 0; moment < 40; moment += 1) {
      const inner = freshLedger()
      const { lifecycle } = await openLifecycle({ ledger: persistentLedger(inner) })
      const agent = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
      await lifecycle.markTurnCompleted('s', { agent })
      void lifecycle.commit('s')
      for (let step = 0; step < moment; step += 1) await tick()
      await lifecycle.close()
      await settle()
      const { result } = await inner.transact('s', (state) => ({ state, result: allSegments(state), events: [] }))
      expect(result, `moment ${moment}`).toHaveLength(1)
      expect(result[0], `moment ${moment}`).not.toMatchObject({ attempts: 1 })
      await inner.close()
    }
  })

  test('D7: an owner that is revived after the close is not called', async () => {
    let give: (agent: ReturnType<typeof scriptedAgent>) => void = () => undefined
    const { lifecycle } = await openLifecycle({ revive: () => new Promise((resolve) => (give = resolve)) })
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s')
    void lifecycle.commit('s')
    await settle()
    await lifecycle.close()
    give(agent)
    await settle()
    expect([agent.seen.length, agent.closes]).toEqual([0, 1])
  })
})
