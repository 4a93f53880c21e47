import { describe, expect, test } from 'vitest'
import { TidemarkError } from '../../src/index.js'
import { faultyLedger, gate, recordingLogger, scriptedAgent, steps } from '../../src/testing/index.js'
import { freshLedger } from '../support/ledgers.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

const ranges = (seen: readonly { from: number; to: number }[]): number[][] => seen.map(({ from, to }) => [from, to])

describe('which segment, and who commits it', () => {
  test('C1: a commit takes the oldest available segment, and one call commits one segment', async () => {
    const { lifecycle } = await openLifecycle()
    const [first, second] = [scriptedAgent({ agentId: 'first' }), scriptedAgent({ agentId: 'second' })]
    await lifecycle.markTurnCompleted('s', { agent: first })
    await lifecycle.markTurnCompleted('s', { agent: second })
    expect(await lifecycle.commit('s')).toEqual({ status: 'committed', from: 1, to: 1, attempt: 1 })
    expect(second.seen).toEqual([])
    expect(await lifecycle.commit('s')).toEqual({ status: 'committed', from: 2, to: 2, attempt: 1 })
  })

  test('C1: if only parked or ownerless segments are left, the outcome says so', async () => {
    const { lifecycle } = await openLifecycle({ retry: { attempts: 1 } })
    await lifecycle.markTurnCompleted('nobody')
    expect(await lifecycle.commit('nobody')).toEqual({ status: 'unowned', from: 1, to: 1 })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'parked', from: 1, to: 1, attempt: 1 })
    expect(agent.seen).toHaveLength(1)
  })

  test('C2: a segment without owner adopts the explicit agent, and keeps it after a failure', async () => {
    const { lifecycle } = await openLifecycle()
    await lifecycle.markTurnCompleted('s')
    const adopter = scriptedAgent({ agentId: 'adopter' })
    adopter.script.push(steps.reject(new Error('down')))
    expect(await lifecycle.commit('s', { agent: adopter })).toMatchObject({ status: 'failed' })
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ owner: 'adopter', attempts: 1 }] })
    lifecycle.registerAgent('s', scriptedAgent({ agentId: 'other' }))
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 2 })
    expect(adopter.seen).toHaveLength(2)
  })

  test('C2: without an explicit agent it adopts the current one', async () => {
    const { lifecycle } = await openLifecycle()
    await lifecycle.markTurnCompleted('s')
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('s', agent)
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed' })
    expect(agent.seen).toHaveLength(1)
  })

  test('C3: a newer agent never commits an older owner’s segment, not even when passed explicitly', async () => {
    const { lifecycle } = await openLifecycle()
    const [older, newer] = [scriptedAgent({ agentId: 'older' }), scriptedAgent({ agentId: 'newer' })]
    await lifecycle.markTurnCompleted('s', { agent: older })
    lifecycle.registerAgent('s', newer)
    expect(await lifecycle.commit('s', { agent: newer })).toMatchObject({ status: 'committed' })
    expect([older.seen.length, newer.seen.length]).toEqual([1, 0])
  })

  test('C4: a commit that finishes late leaves newer turns dirty', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    expect(await lifecycle.markTurnCompleted('s')).toBe(2)
    door.open()
    expect(await commit).toMatchObject({ status: 'committed', from: 1, to: 1 })
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1, segments: [{ from: 2, to: 2, state: 'dirty' }] })
  })

  test('C5: a failure changes only the attempt count and the error; a retry without an agent finds the owner', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(Object.assign(new Error('secret text'), { code: 'ECONNREFUSED' })))
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.unregisterAgent('s')
    const outcome = await lifecycle.commit('s')
    expect(outcome).toMatchObject({ status: 'failed', from: 1, to: 1, attempt: 1, error: { message: 'secret text' } })
    expect(await lifecycle.inspect('s')).toMatchObject({
      generation: 1,
      segments: [{ from: 1, to: 1, owner: 'a', state: 'dirty', attempts: 1, error: 'Error ECONNREFUSED' }],
    })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 2 })
  })

  test('C6: many turns of one owner cost one provider call, and a commit with nothing new calls nobody', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    for (let turn = 0; turn < 50; turn += 1) await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', from: 1, to: 50 })
    expect(await lifecycle.commit('s')).toEqual({ status: 'clean' })
    expect(agent.seen).toHaveLength(1)
  })
})

describe('one at a time', () => {
  test('C7: a second caller is busy at once; with wait it commits what is left', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const first = lifecycle.commit('s')
    expect(await lifecycle.commit('s')).toEqual({ status: 'busy' })
    await door.entered
    await lifecycle.markTurnCompleted('s')
    const waiting = lifecycle.commit('s', { wait: true })
    door.open()
    expect(await first).toMatchObject({ status: 'committed', to: 1 })
    expect(await waiting).toMatchObject({ status: 'committed', from: 2, to: 2 })
    expect(agent.seen.map(({ alongside }) => alongside)).toEqual([0, 0])
  })

  test('C7: a caller that waits for a slot makes the session busy, and a clean session never waits for one', async () => {
    const { lifecycle } = await openLifecycle({ concurrency: 1 })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('one', { agent })
    await lifecycle.markTurnCompleted('two', { agent })
    const one = lifecycle.commit('one')
    await door.entered
    const two = lifecycle.commit('two')
    expect(await lifecycle.commit('two')).toEqual({ status: 'busy' })
    expect(await lifecycle.commit('clean', { agent })).toEqual({ status: 'clean' })
    door.open()
    expect((await one).status).toBe('committed')
    expect((await two).status).toBe('committed')
  })

  test('C8: marking, registering and reading never wait for a provider', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('s', { agent })
    void lifecycle.commit('s')
    await settle()
    expect(agent.seen).toHaveLength(1)
    lifecycle.registerAgent('s', scriptedAgent({ agentId: 'b' }))
    expect(await lifecycle.markTurnCompleted('s')).toBe(2)
    expect(await lifecycle.inspect('s')).toMatchObject({ inFlight: true, generation: 2 })
    expect(await lifecycle.hasUncommittedWork('s')).toBe(true)
    expect(await lifecycle.health()).toMatchObject({ inFlight: 1 })
  })
})

describe('what the caller and the provider are told', () => {
  test('C9: a signal ends the caller’s wait; the call goes on and is recorded when it ends', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const controller = new AbortController()
    const commit = lifecycle.commit('s', { signal: controller.signal })
    const seen = await door.entered
    controller.abort()
    expect(await commit).toEqual({ status: 'aborted' })
    expect(seen.signal.aborted).toBe(false)
    door.open()
    await settle()
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect(await lifecycle.commit('s', { signal: AbortSignal.abort() })).toEqual({ status: 'aborted' })
  })

  test('C9: an owner that is gone is reported with its id', async () => {
    const { lifecycle } = await openLifecycle({ revive: () => undefined })
    await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }) })
    await lifecycle.evict('s')
    await lifecycle.markTurnCompleted('gone')
    expect(await lifecycle.commit('gone')).toEqual({ status: 'unowned', from: 1, to: 1 })
  })

  test('C10: the provider is told range, attempt, reason and a key that stays the same for every attempt', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent, messages: ['hi'] })
    await lifecycle.commit('s', { reason: 'limit' })
    await lifecycle.commit('s')
    await lifecycle.markTurnCompleted('s')
    await lifecycle.commit('s')
    const [first, second, third] = agent.seen
    expect(first).toMatchObject({ sessionId: 's', from: 1, to: 1, attempt: 1, reason: 'limit' })
    expect(second).toMatchObject({ attempt: 2, reason: 'manual', idempotencyKey: first?.idempotencyKey })
    expect(second?.turns).toEqual(first?.turns)
    expect(third?.idempotencyKey).not.toBe(first?.idempotencyKey)
    expect(first?.idempotencyKey).toMatch(/^[0-9a-f-]{36}$/)
  })

  test('C10: a reason that no storage gives back is a TypeError before anything happens', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    await expect(lifecycle.commit('s', { reason: 'a\ud800b' as never })).rejects.toThrow(TypeError)
    await expect(lifecycle.flush('s', { reason: '' as never })).rejects.toThrow(TypeError)
    expect(agent.seen).toEqual([])
  })

  test('C10: turns without messages come from the host’s transcript, in order, without retracted ones', async () => {
    const asked: number[][] = []
    const { lifecycle } = await openLifecycle({
      async *transcript(sessionId, from, to) {
        asked.push([from, to])
        for (let generation = from; generation <= to; generation += 1) {
          yield { sessionId, generation, messages: [`kept elsewhere ${generation}`], completedAt: 0 }
        }
      },
    })
    const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.markTurnCompleted('s', { messages: ['handed over'] })
    await lifecycle.markTurnCompleted('s')
    await lifecycle.markTurnCompleted('s')
    await lifecycle.retractTurns('s', 4)
    await lifecycle.markTurnCompleted('s')
    await lifecycle.commit('s')
    expect(agent.seen[0]?.turns?.map(({ generation }) => generation)).toEqual([1, 2, 3, 5])
    expect(asked).toEqual([
      [1, 1],
      [3, 3],
      [5, 5],
    ])
  })

  test('C9: the commit of a session that was discarded by force is not reported as committed', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.obey() })
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await settle()
    expect(await lifecycle.discard('s', { force: true })).toBe(true)
    expect(await commit).toEqual({ status: 'aborted' })
  })
})

describe('accepted is not committed', () => {
  test('C11: an accepted segment keeps its text until its receipt settles', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
    agent.script.push(steps.accept('r1'))
    agent.settleScript.push(steps.answer({ status: 'pending' }), steps.throwAtOnce(new Error('away')), steps.commit())
    await lifecycle.markTurnCompleted('s', { agent, messages: ['hi'] })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'accepted', from: 1, to: 1 })
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 0, segments: [{ state: 'accepted' }] })
    expect(await lifecycle.health()).toMatchObject({ unsettled: 1, dirtySessions: 0 })
    await clock.advance(60_000)
    expect(agent.settled.map(({ receipt }) => receipt)).toEqual(['r1', 'r1', 'r1'])
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1, segments: [] })
  })

  test('C11: a failed settlement makes the range dirty again, under the same owner and a new key', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
    agent.script.push(steps.accept('r1'))
    agent.settleScript.push(steps.answer({ status: 'failed', error: new Error('extraction failed') }))
    await lifecycle.markTurnCompleted('s', { agent, messages: ['hi'] })
    await lifecycle.commit('s')
    await clock.advance(60_000)
    expect(agent.seen).toHaveLength(2)
    expect(agent.seen[1]).toMatchObject({ from: 1, to: 1, attempt: 2, turns: [{ messages: ['hi'] }] })
    expect(agent.seen[1]?.idempotencyKey).not.toBe(agent.seen[0]?.idempotencyKey)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  })

  test('C11: when the settle deadline passes the segment is parked with its receipt; retryParked asks again first', async () => {
    const { lifecycle, clock } = await openLifecycle({ settleTimeoutMs: 10_000 })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.accept('r1'))
    for (let ask = 0; ask < 20; ask += 1) agent.settleScript.push(steps.answer({ status: 'pending' }))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await clock.advance(10_000)
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ state: 'parked', attempts: 1 }] })
    agent.settleScript.length = 0
    expect(await lifecycle.retryParked('s')).toBe(1)
    await clock.advance(1)
    expect(agent.seen).toHaveLength(1)
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1 })
  })

  test('C11: an unreadable settle answer means unknown and is asked again', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.accept('r1'))
    agent.settleScript.push(steps.answer('nonsense'), steps.reject(undefined), steps.hang(), steps.commit())
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await clock.advance(200_000)
    expect(agent.settled).toHaveLength(4)
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1 })
  })

  test('C11: `accepted` from an agent that cannot settle counts as committed, with a warning', async () => {
    const logger = recordingLogger()
    const { lifecycle } = await openLifecycle({ logger })
    const agent = scriptedAgent({ agentId: 'a', cannotSettle: true })
    agent.script.push(steps.accept('r1'))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed' })
    expect(logger.text()).toContain('no settleMemoryCommit')
  })

  test('C11: `nothing` ends the segment like `committed`', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.nothing() })
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed' })
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  })

  test('C11: in strict order later segments wait for an unsettled one', async () => {
    const { lifecycle, clock } = await openLifecycle({ order: 'strict' })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.accept('r1'))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await lifecycle.markTurnCompleted('s')
    expect(await lifecycle.commit('s')).toEqual({ status: 'busy' })
    lifecycle.switchSession('s', 'next')
    await settle()
    expect(agent.seen).toHaveLength(1)
    await clock.advance(2_000)
    expect(ranges(agent.seen)).toEqual([
      [1, 1],
      [2, 2],
    ])
  })
})

describe('retrying and parking', () => {
  test('C12: an explicit commit makes one attempt, and nothing is retried behind the caller’s back', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent })
    expect((await lifecycle.commit('s')).status).toBe('failed')
    await clock.advance(3_600_000)
    expect(agent.seen).toHaveLength(1)
  })

  test('C12: what a boundary began is retried with growing delays, and parked after the last allowed attempt', async () => {
    const { lifecycle, clock } = await openLifecycle({ retry: { attempts: 4, minDelayMs: 1_000, maxDelayMs: 300_000 } })
    const times: number[] = []
    const agent = scriptedAgent({
      agentId: 'a',
      otherwise: () => {
        times.push(clock.now())
        throw new Error('down')
      },
    })
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.switchSession('s', 'next')
    await clock.advance(3_600_000)
    expect(times.slice(1).map((time, index) => time - times[index]!)).toEqual([750, 1_500, 3_000])
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ state: 'parked', attempts: 4, error: 'Error' }] })
    expect(await lifecycle.health()).toMatchObject({ status: 'degraded', parked: 1 })
    expect(await lifecycle.hasUncommittedWork('s')).toBe(true)
    agent.otherwise = steps.commit()
    expect(await lifecycle.retryParked()).toBe(1)
    await clock.advance(1)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect(agent.seen.at(-1)).toMatchObject({ attempt: 1, idempotencyKey: agent.seen[0]?.idempotencyKey })
  })

  test('C12: an error that says it is not retryable parks at once', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(Object.assign(new Error('unauthorised'), { retryable: false })))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'parked', attempt: 1 })
  })

  test('C12: parked and unowned segments are passed over, so that later ones go on; in strict order they block', async () => {
    for (const order of ['available', 'strict'] as const) {
      const { lifecycle } = await openLifecycle({ retry: { attempts: 1 }, order })
      const [bad, good] = [scriptedAgent({ agentId: 'bad' }), scriptedAgent({ agentId: 'good' })]
      bad.otherwise = steps.reject(new Error('down'))
      await lifecycle.markTurnCompleted('s', { agent: bad })
      await lifecycle.commit('s')
      await lifecycle.markTurnCompleted('s', { agent: good })
      const outcome = await lifecycle.commit('s')
      expect(outcome.status).toBe(order === 'available' ? 'committed' : 'parked')
      expect(good.seen).toHaveLength(order === 'available' ? 1 : 0)
    }
  })

  test('C12: a segment in backoff blocks its session', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const [bad, good] = [scriptedAgent({ agentId: 'bad' }), scriptedAgent({ agentId: 'good' })]
    bad.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent: bad })
    await lifecycle.markTurnCompleted('s', { agent: good })
    lifecycle.switchSession('s', 'next')
    await settle()
    expect([bad.seen.length, good.seen.length]).toEqual([1, 0])
    await clock.advance(1_000)
    expect([bad.seen.length, good.seen.length]).toEqual([2, 1])
  })

  test('C12: a revive that throws is an attempt; one that gives nothing is not', async () => {
    let answer: 'throw' | 'nothing' = 'throw'
    const { lifecycle } = await openLifecycle({
      revive: () => {
        if (answer === 'throw') throw new Error('cannot build')
        return undefined
      },
    })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.evict('s')
    expect(agent.closes).toBe(1)
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'failed', attempt: 2 })
    answer = 'nothing'
    expect(await lifecycle.commit('s')).toEqual({ status: 'unowned', from: 1, to: 1, agentId: 'a' })
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ attempts: 2 }] })
  })

  test('C12: a revived agent commits under its recorded id and is closed when its work is done', async () => {
    const revived = scriptedAgent({ agentId: 'a' })
    const { lifecycle } = await openLifecycle({ revive: ({ agentId }) => (agentId === 'a' ? revived : undefined) })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.evict('s')
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed' })
    expect(revived.seen).toHaveLength(1)
    expect(revived.closes).toBe(1)
  })

  test('C12: a stranger from revive is refused with a code', async () => {
    const stranger = scriptedAgent({ agentId: 'stranger' })
    const { lifecycle } = await openLifecycle({ revive: () => stranger })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.evict('s')
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'failed', error: { code: 'REVIVED_STRANGER' } })
    expect([stranger.seen.length, stranger.closes]).toEqual([0, 1])
  })
})

describe('time limits', () => {
  test('C13: a call that outlives its limit is aborted, then abandoned: claim and slot are free, the attempt failed', async () => {
    const { lifecycle, clock } = await openLifecycle({ concurrency: 1 })
    const agent = scriptedAgent({ agentId: 'a', provider: 'p' })
    agent.script.push(steps.hang())
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await clock.advance(60_000)
    expect(agent.seen[0]?.signal.aborted).toBe(true)
    await clock.advance(4_999)
    expect(await lifecycle.health()).toMatchObject({ inFlight: 1, status: 'degraded' })
    await clock.advance(1)
    expect(await commit).toMatchObject({ status: 'failed', attempt: 1, error: { code: 'COMMIT_ABANDONED' } })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 2 })
  })

  test('C13: a late success of an abandoned call counts by its key, once, and makes the retry needless', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const late = gate()
    agent.script.push(late.step, steps.obey())
    await lifecycle.markTurnCompleted('s', { agent })
    const first = lifecycle.commit('s')
    await clock.advance(65_000)
    expect((await first).status).toBe('failed')
    await lifecycle.markTurnCompleted('s')
    const retry = lifecycle.commit('s')
    await settle()
    expect(agent.seen[1]?.signal.aborted).toBe(false)
    late.open()
    await settle()
    expect(agent.seen[1]?.signal.aborted).toBe(true)
    expect((await retry).status).toBe('committed')
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1, segments: [{ from: 2, to: 2, state: 'dirty' }] })
  })

  test('C13: a needless retry that ignores its signal is abandoned after one grace period', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const late = gate()
    agent.script.push(late.step, steps.hang())
    await lifecycle.markTurnCompleted('s', { agent })
    void lifecycle.commit('s')
    await clock.advance(65_000)
    const retry = lifecycle.commit('s')
    await settle()
    late.open()
    await clock.advance(5_000)
    expect(await retry).toMatchObject({ status: 'committed', from: 1, to: 1 })
    await lifecycle.markTurnCompleted('s')
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', from: 2, to: 2 })
    expect(clock.pending).toBe(0)
  })

  test('C13: a late failure or acceptance of an abandoned call counts for nothing', async () => {
    for (const end of ['fail', 'accept'] as const) {
      const { lifecycle, clock } = await openLifecycle()
      const agent = scriptedAgent({ agentId: 'a' })
      const late = gate()
      const current = gate()
      agent.script.push(late.step, current.step)
      await lifecycle.markTurnCompleted('s', { agent })
      void lifecycle.commit('s')
      await clock.advance(65_000)
      const retry = lifecycle.commit('s')
      await current.entered
      if (end === 'fail') late.fail(new Error('too late'))
      else late.open({ status: 'accepted', receipt: 'stale' })
      await settle()
      expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ state: 'claimed', attempts: 2 }] })
      current.open()
      expect((await retry).status).toBe('committed')
    }
  })
})

describe('providers that misbehave', () => {
  const nonsense: readonly [string, unknown][] = [
    ['null', null],
    ['a string', 'ok'],
    ['a number', 200],
    ['true', true],
    ['an unknown status', { status: 'done' }],
    ['accepted without receipt', { status: 'accepted' }],
    ['accepted with an empty receipt', { status: 'accepted', receipt: '' }],
    ['accepted with a receipt that holds NUL', { status: 'accepted', receipt: 'a\0b' }],
    ['accepted with a receipt that holds half a character', { status: 'accepted', receipt: 'a\ud800b' }],
  ]
  test.each(nonsense)('C11, C14: answering %s is a failed attempt with a code', async (_name, value) => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.answer(value))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'failed', error: { code: 'COMMIT_ANSWER_INVALID' } })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 2 })
  })

  const throws: readonly [string, unknown][] = [
    ['an Error', new Error('x')],
    ['undefined', undefined],
    ['null', null],
    ['a string', 'text'],
    [
      'an object whose fields throw',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('trap')
          },
        },
      ),
    ],
  ]
  test.each(throws)('C14: throwing %s, at once or later, leaves no claim stuck', async (_name, error) => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.throwAtOnce(error), steps.reject(error))
    await lifecycle.markTurnCompleted('s', { agent })
    expect((await lifecycle.commit('s')).status).toBe('failed')
    expect((await lifecycle.commit('s')).status).toBe('failed')
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 3 })
  })

  test('C14: a thenable that resolves twice, and then rejects, is heard once', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(
      steps.answer({
        then(resolve: (value?: unknown) => void, reject: (error: unknown) => void) {
          resolve()
          resolve({ status: 'accepted', receipt: 'r' })
          reject(new Error('changed its mind'))
        },
      }),
    )
    await lifecycle.markTurnCompleted('s', { agent })
    expect((await lifecycle.commit('s')).status).toBe('committed')
    await settle()
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1, segments: [] })
  })

  test('C14: an answer that could not be recorded is kept, and recorded first when the ledger is back', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.failNext = 2
    door.open()
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    expect(await lifecycle.health()).toMatchObject({ status: 'unhealthy' })
    await expect(lifecycle.commit('s')).rejects.toBeInstanceOf(TidemarkError)
    expect(await lifecycle.commit('s')).toEqual({ status: 'clean' })
    expect(agent.seen).toHaveLength(1)
    await clock.advance(60_000)
    expect(await lifecycle.health()).toMatchObject({ status: 'ok' })
  })

  test('C14: a kept answer is also recorded without another commit', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.failNext = 3
    door.open()
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    await clock.advance(60_000)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  })

  test('C14: a claim whose write was reported as failed but happened is released by the next commit', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    ledger.loseNext = 1
    await expect(lifecycle.commit('s')).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    expect(agent.seen).toEqual([])
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 2 })
  })

  test('C14: a second answer is kept as well while the ledger is away', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    const [door, question] = [gate(), gate()]
    agent.script.push(steps.accept('r'), door.step)
    agent.settleScript.push(question.step)
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    await clock.advance(1_000)
    await lifecycle.markTurnCompleted('s')
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.failNext = 1_000
    question.open()
    await settle()
    door.open()
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    ledger.failNext = 0
    await clock.advance(600_000)
    expect(agent.seen).toHaveLength(2)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [] })
  })

  test.each([
    ['a word of one’s own', 'because'],
    ['a number', 5],
    ['an object', {}],
  ])('a reason that is %s is a TypeError before anything is recorded', async (_name, reason) => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    const options = { reason: reason as 'manual' }
    await expect(lifecycle.commit('s', options)).rejects.toBeInstanceOf(TypeError)
    await expect(lifecycle.flush('s', options)).rejects.toBeInstanceOf(TypeError)
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', attempt: 1 })
  })

  const words: readonly [string, () => unknown, unknown][] = [
    ['half a character', () => 'a\ud800b', 'a\ufffdb'],
    ['NUL', () => 'a\0b', 'a\ufffdb'],
    ['no text at all', () => ({ toString: () => 'text' }), 'Error'],
  ]
  test.each(words)('C14: words for an error with %s are stored as what can be stored', async (_name, say, stored) => {
    const { lifecycle } = await openLifecycle({ describeError: say as () => string })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('x')))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'failed' })
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ state: 'dirty', error: stored }] })
  })

  test('C14: a long error that is cut in the middle of a character is stored as what can be stored', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    // The code comes before it.
    const message = `${'x'.repeat(198 - 'PROVIDER_FAILED: '.length)}🐙${'x'.repeat(99)}`
    agent.script.push(steps.reject(new TidemarkError('PROVIDER_FAILED', message)))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    const [segment] = (await lifecycle.inspect('s'))?.segments ?? []
    expect(segment?.error).toMatch(/^PROVIDER_FAILED: x+\ufffd…$/)
  })

  test('C14: a describeError that throws leaves no claim stuck', async () => {
    const { lifecycle } = await openLifecycle({ describeError: (error) => (error as Error).message })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(undefined))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'failed' })
    expect(await lifecycle.inspect('s')).toMatchObject({ segments: [{ state: 'dirty' }] })
  })

  test('C14: an acceptance whose write was reported as failed but happened is asked about all the same', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    ledger.loseNext = 1
    door.open({ status: 'accepted', receipt: 'r' })
    await expect(commit).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    await clock.advance(60_000)
    expect(agent.settled).toHaveLength(1)
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 1, segments: [] })
  })

  test('C14: a boundary that the ledger could not take does not make it forget the question about a receipt', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.accept('r') })
    await lifecycle.markTurnCompleted('s', { agent })
    ledger.failNext = 1
    lifecycle.switchSession('s', 'next')
    await lifecycle.commit('s')
    await clock.advance(60_000)
    expect(agent.settled).toHaveLength(1)
  })

  test('C14: parked work that was taken up by a write reported as failed is tried all the same', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger, retry: { attempts: 1 } })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    ledger.loseNext = 1
    await expect(lifecycle.retryParked('s')).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
    expect(await lifecycle.retryParked('s')).toBe(0)
    await clock.advance(60_000)
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  })
})

describe('flush', () => {
  test('C15: flush commits segment after segment until the session is clean', async () => {
    const { lifecycle } = await openLifecycle()
    for (const agentId of ['a', 'b', 'c']) await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId }) })
    expect(await lifecycle.flush('s')).toEqual({ committed: 3, accepted: 0, failed: 0, parked: 0, clean: true })
  })

  test('C12, C15: flush tries each segment once and reports what is left', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const bad = scriptedAgent({ agentId: 'bad', otherwise: steps.reject(new Error('down')) })
    const good = scriptedAgent({ agentId: 'good' })
    await lifecycle.markTurnCompleted('s', { agent: bad })
    await lifecycle.markTurnCompleted('s', { agent: good })
    expect(await lifecycle.flush('s')).toEqual({ committed: 1, accepted: 0, failed: 1, parked: 0, clean: false })
    await clock.advance(3_600_000)
    expect([bad.seen.length, good.seen.length]).toEqual([1, 1])
  })

  test('C15: flush waits for a commit that is under way', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    await lifecycle.markTurnCompleted('s')
    const flush = lifecycle.flush('s')
    door.open()
    await commit
    expect(await flush).toMatchObject({ committed: 1, clean: true })
  })
})
