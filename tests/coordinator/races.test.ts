import { expect, test } from 'vitest'
import { scriptedAgent } from '../../src/testing/index.js'
import { freshLedger } from '../support/ledgers.js'
import { openLifecycle, settle, tick } from '../support/lifecycle.js'
import { persistentLedger } from '../support/persistent-ledger.js'

/** Longer than anything here takes in memory; on disk the same moments lie further apart. */
const MOMENTS = 60

test('B3: an agent that registers at any moment of a boundary takes the work', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    for (let step = 0; step < moment; step += 1) await tick()
    lifecycle.registerAgent('s', agent)
    await settle()
    expect(agent.seen.length, `moment ${moment}`).toBe(1)
  }
})

test('B3: a boundary at any moment of another one is not lost', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    lifecycle.switchSession('s', 'next')
    for (let step = 0; step < moment; step += 1) await tick()
    const marked = lifecycle.markTurnCompleted('s')
    lifecycle.switchSession('s', 'next')
    await marked
    await settle()
    expect(await lifecycle.hasUncommittedWork('s'), `moment ${moment}`).toBe(false)
  }
})

test('B4: whenever a turn completes during an eviction, its agent is not closed before the turn is committed', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    const close = agent.close!.bind(agent)
    let closedDirty = false
    agent.close = () => {
      closedDirty = agent.seen.reduce((n, { to }) => Math.max(n, to), 0) < marked
      return close()
    }
    let marked = 1
    await lifecycle.markTurnCompleted('s', { agent })
    const evicted = lifecycle.evict('s')
    for (let step = 0; step < moment; step += 1) await tick()
    if (agent.closes > 0) break
    marked = 2
    void lifecycle.markTurnCompleted('s', { agent })
    await evicted
    await settle()
    expect(closedDirty, `moment ${moment}`).toBe(false)
    expect([agent.closes, await lifecycle.hasUncommittedWork('s')], `moment ${moment}`).toEqual([1, false])
  }
})

test('L3: a turn recorded while its session is being discarded keeps its owner', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle, clock } = await openLifecycle({ boundaries: { idleMs: 1_000 } })
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    await lifecycle.commit('s')
    const discarded = lifecycle.discard('s')
    for (let step = 0; step < moment; step += 1) await tick()
    await lifecycle.markTurnCompleted('s', { agent })
    expect(await discarded).toBe(true)
    await clock.advance(1_000)
    expect(await lifecycle.hasUncommittedWork('s'), `moment ${moment}`).toBe(false)
  }
})

test('B7: an agent that registers under the new id during the rotation stays its agent', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    lifecycle.registerAgent('old', scriptedAgent({ agentId: 'a' }))
    const rotated = lifecycle.rotate('old', 'new')
    for (let step = 0; step < moment; step += 1) await tick()
    lifecycle.registerAgent('new', scriptedAgent({ agentId: 'b' }))
    await rotated.catch(() => undefined)
    expect((await lifecycle.inspect('new'))?.agentId, `moment ${moment}`).toBe('b')
  }
})

test('D7: whenever it is closed, no provider is called afterwards', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    await lifecycle.markTurnCompleted('s', { agent })
    const commit = lifecycle.commit('s')
    commit.catch(() => undefined)
    for (let step = 0; step < moment; step += 1) await tick()
    const before = agent.seen.length
    void lifecycle.close()
    await settle()
    expect(agent.seen.length, `moment ${moment}`).toBe(before)
  }
})

test('C2, L12: ownerless work that was taken in the name of a known turn id is committed all the same', async () => {
  for (let moment = 0; moment < MOMENTS; moment += 1) {
    const { lifecycle } = await openLifecycle()
    const [one, other] = [scriptedAgent({ agentId: 'one' }), scriptedAgent({ agentId: 'other' })]
    await lifecycle.markTurnCompleted('s')
    await lifecycle.markTurnCompleted('s', { agent: one, turnId: 't' })
    const flush = lifecycle.flush('s')
    for (let step = 0; step < moment; step += 1) await tick()
    const again = lifecycle.markTurnCompleted('s', { agent: other, turnId: 't' })
    await Promise.all([flush, again])
    await lifecycle.flush('s')
    expect(await lifecycle.hasUncommittedWork('s'), `moment ${moment}`).toBe(false)
  }
})

test('L3: the owner of a turn that was recorded although its mark failed is kept, whoever took its place', async () => {
  const ledger = persistentLedger(freshLedger())
  const { lifecycle, clock } = await openLifecycle({ ledger })
  await settle()
  const agent = scriptedAgent({ agentId: 'a' })
  // A look at the state before the turn lets go of an agent that owns nothing in it.
  const look = lifecycle.hasUncommittedWork('s')
  const transact = ledger.transact.bind(ledger)
  ledger.transact = async (sessionId, decide) => {
    await transact(sessionId, decide)
    throw new Error('written, and reported as failed')
  }
  const marked = lifecycle.markTurnCompleted('s', { agent })
  ledger.transact = transact
  lifecycle.registerAgent('s', scriptedAgent({ agentId: 'b' }))
  await look
  await expect(marked).rejects.toThrow('reported as failed')
  lifecycle.switchSession('s', 'next')
  await clock.advance(10_000)
  expect(agent.seen).toMatchObject([{ from: 1, to: 1 }])
})
