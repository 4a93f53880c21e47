import { describe, expect, test } from 'vitest'
import { faultyLedger, gate, scriptedAgent, steps } from '../../src/testing/index.js'
import { freshLedger, ledgerKind } from '../support/ledgers.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

describe('boundaries', () => {
  test('B1: completing a turn only records it', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    for (let turn = 0; turn < 100; turn += 1) await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(86_400_000)
    expect(agent.seen).toEqual([])
  })

  test('B2: switching conversations commits the previous one in the background; the caller never waits', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('old', { agent })
    lifecycle.switchSession('old', 'new')
    expect(await door.entered).toMatchObject({ sessionId: 'old', reason: 'switch' })
    const evicted = lifecycle.evict('old')
    await settle()
    expect(agent.closes).toBe(0)
    door.open()
    expect(await evicted).toEqual({ closed: true, clean: true, remaining: [] })
  })

  test('B2: switching from a clean or unknown session, or to the same one, calls nobody', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.switchSession('unknown', 'new')
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.switchSession('s', 's')
    await settle()
    expect(agent.seen).toEqual([])
  })

  test('B2: a switch that the ledger could not take is made up for when it is back', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    ledger.failNext = 2
    lifecycle.switchSession('s', 'next')
    await settle()
    expect(agent.seen).toEqual([])
    await clock.advance(10_000)
    expect(agent.seen).toMatchObject([{ reason: 'switch' }])
  })

  test('B2: how long that takes does not depend on what failed for other sessions', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger })
    const agent = scriptedAgent({ agentId: 'a' })
    for (let index = 0; index < 12; index += 1) await lifecycle.markTurnCompleted(`s${index}`, { agent })
    for (let index = 0; index < 12; index += 1) {
      ledger.failNext = 1
      lifecycle.switchSession(`s${index}`, 'next')
      await settle()
    }
    await clock.advance(2_000)
    expect(agent.seen).toHaveLength(12)
  })

  test('B3: a boundary during a commit is not lost: what it found dirty is committed next; later turns are not', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const [first, second] = [gate(), gate()]
    agent.script.push(first.step, second.step)
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.switchSession('s', 'next')
    await first.entered
    await lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    first.open()
    expect(await second.entered).toMatchObject({ from: 2, to: 2 })
    await lifecycle.markTurnCompleted('s')
    second.open()
    await settle()
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 2, segments: [{ from: 3, to: 3, state: 'dirty' }] })
  })

  test('B1: an agent that comes takes what waited for it, and no turn of its own', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    await settle()
    await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(60_000)
    expect(agent.seen.map(({ from, to }) => [from, to])).toEqual([[1, 1]])
  })

  test('B1: work that was waiting for an owner and is done leaves no boundary behind', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    await settle()
    await lifecycle.commit('s', { agent })
    expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
    await lifecycle.markTurnCompleted('s')
    lifecycle.registerAgent('s', agent)
    await clock.advance(60_000)
    expect(agent.seen).toHaveLength(1)
  })

  test('B2: ownerless work behind a parked segment is taken up as well when an agent comes', async () => {
    const { lifecycle } = await openLifecycle({ retry: { attempts: 1 } })
    const bad = scriptedAgent({ agentId: 'bad', otherwise: steps.reject(new Error('down')) })
    await lifecycle.markTurnCompleted('s', { agent: bad })
    await lifecycle.commit('s')
    lifecycle.unregisterAgent('s')
    await lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    await settle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('s', agent)
    await settle()
    expect(agent.seen).toMatchObject([{ from: 2, to: 2, reason: 'switch' }])
  })
})

describe('eviction', () => {
  test('B4: eviction flushes all segments, then closes each agent it found once and unregisters the current one', async () => {
    const { lifecycle } = await openLifecycle()
    const agents = ['a', 'b', 'c'].map((agentId) => scriptedAgent({ agentId }))
    for (const agent of agents) await lifecycle.markTurnCompleted('s', { agent })
    const [one, other] = await Promise.all([lifecycle.evict('s'), lifecycle.evict('s')])
    expect(one).toEqual({ closed: true, clean: true, remaining: [] })
    expect(other.clean).toBe(true)
    expect(agents.map(({ seen, closes }) => [seen.length, closes])).toEqual([
      [1, 1],
      [1, 1],
      [1, 1],
    ])
    expect(await lifecycle.inspect('s')).not.toHaveProperty('agentId')
  })

  test('B4: if work is left the agent stays open as its owner, and is closed when the work is done', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.evict('s')).toEqual({
      closed: false,
      clean: false,
      remaining: [{ from: 1, to: 1, reason: 'failing' }],
    })
    expect(agent.closes).toBe(0)
    await clock.advance(10_000)
    expect(agent.seen).toHaveLength(2)
    expect(agent.closes).toBe(1)
  })

  test('B4: parked work keeps the agent open too, until retryParked brought it through', async () => {
    const { lifecycle, clock } = await openLifecycle({ retry: { attempts: 1 } })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.evict('s')).toMatchObject({ closed: false, remaining: [{ reason: 'parked' }] })
    await lifecycle.retryParked('s')
    await clock.advance(1)
    expect(agent.closes).toBe(1)
  })

  test('B4: an unsettled receipt keeps the agent open until it settles', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.accept('r') })
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.evict('s')).toMatchObject({
      closed: false,
      clean: true,
      remaining: [{ reason: 'unsettled' }],
    })
    await clock.advance(10_000)
    expect(agent.closes).toBe(1)
  })

  test('B4: ownerless work that an eviction found is committed when an agent comes', async () => {
    const { lifecycle, clock } = await openLifecycle()
    await lifecycle.markTurnCompleted('s')
    expect(await lifecycle.evict('s')).toMatchObject({ clean: false, remaining: [{ reason: 'unowned' }] })
    await clock.advance(10_000)
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('s', agent)
    await clock.advance(10_000)
    expect(agent.seen).toMatchObject([{ from: 1, to: 1, reason: 'evict' }])
  })

  test('B4: with a revive function the agent is closed at once, because it can be rebuilt', async () => {
    const revived = scriptedAgent({ agentId: 'a' })
    const { lifecycle, clock } = await openLifecycle({ revive: () => revived })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.evict('s')).toMatchObject({ closed: true, clean: false })
    expect(agent.closes).toBe(1)
    await clock.advance(10_000)
    expect(revived.seen).toMatchObject([{ attempt: 2, idempotencyKey: agent.seen[0]?.idempotencyKey }])
    expect([agent.closes, revived.closes]).toEqual([1, 1])
  })

  test('B4: an agent shared by sessions is closed only when no session needs it', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'shared' })
    await lifecycle.markTurnCompleted('one', { agent })
    await lifecycle.markTurnCompleted('two', { agent })
    expect(await lifecycle.evict('one')).toMatchObject({ closed: false, clean: true })
    expect(agent.closes).toBe(0)
    expect(await lifecycle.evict('two')).toMatchObject({ closed: true })
    expect(agent.closes).toBe(1)
  })

  test('B4: eviction waits for a commit that is under way', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    const evicted = lifecycle.evict('s')
    await settle()
    expect(agent.closes).toBe(0)
    door.open()
    await commit
    expect(await evicted).toMatchObject({ closed: true, clean: true })
    expect(agent.closes).toBe(1)
  })

  test('B4: a signal ends the wait of an eviction and closes nothing', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
    await lifecycle.markTurnCompleted('s', { agent })
    const controller = new AbortController()
    const evicted = lifecycle.evict('s', { signal: controller.signal })
    await settle()
    controller.abort()
    expect(await evicted).toEqual({ closed: false, clean: false, remaining: [{ from: 1, to: 1, reason: 'in-flight' }] })
    expect(agent.closes).toBe(0)
  })

  test('B4: an agent that fails or hangs in close hurts nobody', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const failing = scriptedAgent({ agentId: 'failing' })
    failing.close = () => Promise.reject(new Error('no'))
    const hanging = scriptedAgent({ agentId: 'hanging' })
    hanging.close = () => new Promise(() => undefined)
    await lifecycle.markTurnCompleted('f', { agent: failing })
    await lifecycle.markTurnCompleted('h', { agent: hanging })
    expect(await lifecycle.evict('f')).toMatchObject({ closed: true })
    const hung = lifecycle.evict('h')
    await clock.advance(60_000)
    expect(await hung).toMatchObject({ closed: true })
  })

  test('B5: an agent that is serving a turn is not closed; eviction waits, and flushes what the turn recorded', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('s', agent)
    const release = lifecycle.hold('s')
    const evicted = lifecycle.evict('s')
    await settle()
    expect(agent.closes).toBe(0)
    await lifecycle.markTurnCompleted('s')
    release()
    release()
    expect(await evicted).toEqual({ closed: true, clean: true, remaining: [] })
    expect(agent.seen).toMatchObject([{ from: 1, to: 1, reason: 'evict' }])
  })

  test('B5: a held agent is not closed, even if another one takes its place', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('one', agent)
    lifecycle.registerAgent('two', agent)
    const release = lifecycle.hold('two')
    await lifecycle.evict('one')
    lifecycle.registerAgent('two', scriptedAgent({ agentId: 'b' }))
    await lifecycle.hasUncommittedWork('two')
    expect(agent.closes).toBe(0)
    release()
    release()
    expect(agent.closes).toBe(1)
  })
})

describe('conversations that never end', () => {
  test('B6: boundaries of their own are off by default, and each can be switched on', async () => {
    const agent = scriptedAgent({ agentId: 'a' })
    const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 10_000 } })
    await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(6_000)
    await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(9_999)
    expect(agent.seen).toEqual([])
    await clock.advance(1)
    expect(agent.seen).toMatchObject([{ from: 1, to: 2, reason: 'idle' }])
  })

  test('B6: a number of turns is a boundary', async () => {
    const agent = scriptedAgent({ agentId: 'a' })
    const { lifecycle } = await openLifecycle({ boundaries: { maxTurns: 3 } })
    for (let turn = 0; turn < 7; turn += 1) {
      await lifecycle.markTurnCompleted('s', { agent })
      await settle()
    }
    expect(agent.seen).toMatchObject([
      { from: 1, to: 3, reason: 'limit' },
      { from: 4, to: 6, reason: 'limit' },
    ])
  })

  test('B6: the age of the oldest uncommitted turn is a boundary, whatever is still being said', async () => {
    const agent = scriptedAgent({ agentId: 'a' })
    const { lifecycle, clock } = await openLifecycle({ boundaries: { maxAgeMs: 10_000, idleMs: 5_000 } })
    for (let turn = 0; turn < 4; turn += 1) {
      await lifecycle.markTurnCompleted('s', { agent })
      await clock.advance(3_000)
    }
    expect(agent.seen).toMatchObject([{ from: 1, to: 4, reason: 'limit' }])
  })

  test('B6: a minimum interval holds them apart', async () => {
    const agent = scriptedAgent({ agentId: 'a' })
    const { lifecycle, clock } = await openLifecycle({ boundaries: { maxTurns: 1, minIntervalMs: 60_000 } })
    await lifecycle.markTurnCompleted('s', { agent })
    await settle()
    await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(59_999)
    expect(agent.seen).toHaveLength(1)
    await clock.advance(1)
    expect(agent.seen).toMatchObject([{ to: 1 }, { from: 2, to: 2 }])
  })

  test('B6: a turn whose write was reported as failed but happened still falls idle', async () => {
    const ledger = faultyLedger(freshLedger())
    const { lifecycle, clock } = await openLifecycle({ ledger, boundaries: { idleMs: 10_000 } })
    const agent = scriptedAgent({ agentId: 'a' })
    ledger.loseNext = 1
    await expect(lifecycle.markTurnCompleted('s', { agent, turnId: 't' })).rejects.toThrow('failed')
    expect(await lifecycle.markTurnCompleted('s', { agent, turnId: 't' })).toBe(1)
    await clock.advance(20_000)
    expect(agent.seen).toMatchObject([{ from: 1, to: 1, reason: 'idle' }])
  })

  test('B6: parked work feeds no boundary', async () => {
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
    const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 1_000 }, retry: { attempts: 1 } })
    await lifecycle.markTurnCompleted('s', { agent })
    await clock.advance(3_600_000)
    expect(agent.seen).toHaveLength(1)
  })
})

describe('rotation', () => {
  test('B7: old work keeps its owner and is committed under the old id; new turns count under the new one', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('old', { agent })
    await lifecycle.rotate('old', 'new')
    await settle()
    expect(agent.seen).toMatchObject([{ sessionId: 'old', from: 1, to: 1, reason: 'rotate' }])
    expect(await lifecycle.markTurnCompleted('new')).toBe(1)
    expect(await lifecycle.inspect('new')).toMatchObject({ agentId: 'a', segments: [{ owner: 'a' }] })
    expect(await lifecycle.inspect('old')).toMatchObject({ rotatedTo: 'new', segments: [] })
    expect(await lifecycle.inspect('old')).not.toHaveProperty('agentId')
  })

  test('B7: it may be repeated; a late mark under the old id stays there, owned by the moved agent, and is a boundary', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('old', agent)
    await lifecycle.rotate('old', 'new')
    await lifecycle.rotate('old', 'new')
    expect(await lifecycle.markTurnCompleted('old')).toBe(1)
    await settle()
    expect(agent.seen).toMatchObject([{ sessionId: 'old', from: 1, to: 1, reason: 'rotate' }])
    expect(await lifecycle.hasUncommittedWork('new')).toBe(false)
  })

  test('B7: a late mark that names the moved agent does not keep it open under the old id', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    lifecycle.registerAgent('old', agent)
    await lifecycle.rotate('old', 'new')
    expect(await lifecycle.markTurnCompleted('old', { agent })).toBe(1)
    await settle()
    expect(agent.seen).toMatchObject([{ sessionId: 'old', from: 1, to: 1, reason: 'rotate' }])
    expect(await lifecycle.evict('new')).toMatchObject({ closed: true })
    expect(agent.closes).toBe(1)
  })

  test('B7: a new id with a different live agent is refused, and so is a second destination', async () => {
    const { lifecycle } = await openLifecycle()
    lifecycle.registerAgent('old', scriptedAgent({ agentId: 'a' }))
    lifecycle.registerAgent('taken', scriptedAgent({ agentId: 'b' }))
    await expect(lifecycle.rotate('old', 'taken')).rejects.toMatchObject({ code: 'ROTATION_REFUSED' })
    expect(await lifecycle.inspect('old')).toMatchObject({ agentId: 'a' })
    await lifecycle.rotate('old', 'new')
    await expect(lifecycle.rotate('old', 'elsewhere')).rejects.toMatchObject({ code: 'ROTATION_REFUSED' })
    await expect(lifecycle.rotate('old', 'old')).rejects.toThrow(TypeError)
  })

  test('B7: the moved agent is closed by the eviction of the new id, once the old work is done', async () => {
    const { lifecycle, clock } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.reject(new Error('down')))
    await lifecycle.markTurnCompleted('old', { agent })
    await lifecycle.rotate('old', 'new')
    await settle()
    expect(await lifecycle.evict('new')).toMatchObject({ closed: false, clean: true })
    await clock.advance(10_000)
    expect(await lifecycle.hasUncommittedWork('old')).toBe(false)
    expect(agent.closes).toBe(1)
  })
})

describe('discarding', () => {
  test('B8: discarding a clean or an unknown session answers true', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    expect(await lifecycle.discard('s')).toBe(true)
    expect(await lifecycle.discard('unknown')).toBe(true)
    const again = await lifecycle.markTurnCompleted('s', { agent })
    // A ledger that persists keeps the number (L8); one in memory frees all of it.
    expect(again).toBe(ledgerKind === 'memory' ? 1 : 2)
  })

  test('B8: a dirty, in-flight or unsettled session is refused and stays as it was', async () => {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.discard('s')).toBe(false)
    const commit = lifecycle.commit('s')
    await door.entered
    expect(await lifecycle.discard('s')).toBe(false)
    door.open({ status: 'accepted', receipt: 'r' })
    await commit
    expect(await lifecycle.discard('s')).toBe(false)
    expect(await lifecycle.inspect('s')).toMatchObject({ generation: 1, agentId: 'a' })
  })

  test('B8: a call that ignores its signal keeps a session that was discarded by force busy for one grace period', async () => {
    const { lifecycle, clock } = await openLifecycle({ concurrency: 1 })
    const agent = scriptedAgent({ agentId: 'a' })
    agent.script.push(steps.hang())
    await lifecycle.markTurnCompleted('s', { agent })
    const cut = lifecycle.commit('s')
    await settle()
    await lifecycle.discard('s', { force: true })
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await lifecycle.commit('s')).toEqual({ status: 'busy' })
    const next = lifecycle.commit('s', { wait: true })
    await clock.advance(5_000)
    expect(await cut).toEqual({ status: 'aborted' })
    expect(await next).toMatchObject({ status: 'committed', attempt: 1 })
    expect(clock.pending).toBe(0)
  })

  test('B8: force throws work away and says what; a late answer of its call clears nothing newer', async () => {
    const { lifecycle } = await openLifecycle()
    const thrown: unknown[] = []
    lifecycle.on('session:discarded', (event) => thrown.push(event))
    const agent = scriptedAgent({ agentId: 'a' })
    const door = gate()
    agent.script.push(door.step)
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    await door.entered
    expect(await lifecycle.discard('s', { force: true })).toBe(true)
    expect(thrown).toEqual([{ sessionId: 's', thrownAway: [{ from: 1, to: 1 }] }])
    await lifecycle.markTurnCompleted('s', { agent })
    door.open()
    await commit
    expect(await lifecycle.hasUncommittedWork('s')).toBe(true)
  })
})

test('B9: a finished session leaves nothing behind: no agent, no wake-up, no timer', async () => {
  const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 1_000 } })
  for (let index = 0; index < 100; index += 1) {
    const agent = scriptedAgent({ agentId: `agent-${index}` })
    await lifecycle.markTurnCompleted(`session-${index}`, { agent })
    await lifecycle.evict(`session-${index}`)
    expect(agent.closes).toBe(1)
  }
  await clock.advance(1_000)
  expect(clock.pending).toBe(0)
  expect(await lifecycle.health()).toMatchObject({ status: 'ok', dirtySessions: 0, inFlight: 0 })
})

test('B9: a finished session leaves no wake-up behind', async () => {
  const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 86_400_000 } })
  for (let index = 0; index < 10; index += 1) {
    const agent = scriptedAgent()
    await lifecycle.markTurnCompleted(`s${index}`, { agent })
    await lifecycle.commit(`s${index}`)
  }
  expect(clock.pending).toBe(0)
})
