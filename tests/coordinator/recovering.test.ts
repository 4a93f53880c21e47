import { expect, test } from 'vitest'
import { memoryLedger, MemoryLifecycle } from '../../src/index.js'
import { faultyLedger, manualClock, scriptedAgent, steps } from '../../src/testing/index.js'
import { failAt } from '../support/fail-at.js'
import { settle } from '../support/lifecycle.js'
import { persistentLedger } from '../support/persistent-ledger.js'

test('B1, R1: turns recorded before the recovery has looked are not taken for earlier work', async () => {
  const ledger = persistentLedger()
  let open: () => void = () => undefined
  ledger.gates.push(() => new Promise((resolve) => (open = resolve)))
  const clock = manualClock()
  const lifecycle = await MemoryLifecycle.open({ ledger, clock })
  const recovered: unknown[] = []
  lifecycle.on('session:recovered', (event) => recovered.push(event))
  const agent = scriptedAgent({ agentId: 'a' })
  await settle()
  await lifecycle.markTurnCompleted('s', { agent })
  open()
  await settle()
  expect([agent.seen.length, recovered.length]).toEqual([0, 0])
  await lifecycle.close()
})

test('B1, R1: an agent that comes back takes the earlier work, and no turn of its own', async () => {
  const inner = memoryLedger()
  const clock = manualClock()
  const failing = scriptedAgent({ agentId: 'a', otherwise: steps.reject(new Error('down')) })
  const first = await MemoryLifecycle.open({
    ledger: persistentLedger(inner),
    clock,
  })
  await first.markTurnCompleted('s', { agent: failing })
  await first.commit('s')
  await first.close()
  const second = await MemoryLifecycle.open({ ledger: persistentLedger(inner), clock })
  await settle()
  const agent = scriptedAgent({ agentId: 'a' })
  await second.markTurnCompleted('s', { agent })
  await settle()
  expect(agent.seen.map(({ from, to, reason }) => [from, to, reason])).toEqual([[1, 1, 'recovery']])
  await second.close()
})

test('R1: earlier work that a drain interrupts still waits for its agent', async () => {
  const inner = memoryLedger()
  const clock = manualClock()
  const first = await MemoryLifecycle.open({
    ledger: persistentLedger(inner),
    clock,
  })
  await first.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }) })
  await first.close()
  const second = await MemoryLifecycle.open({ ledger: persistentLedger(inner), clock })
  const hung = scriptedAgent({ agentId: 'h', provider: 'h', otherwise: steps.hang() })
  await second.markTurnCompleted('h', { agent: hung })
  const drained = second.drain({ deadlineMs: 10_000 })
  await settle()
  await second.markTurnCompleted('s')
  second.switchSession('s', 'next')
  await clock.advance(10_000)
  await drained
  await settle()
  const agent = scriptedAgent({ agentId: 'a' })
  second.registerAgent('s', agent)
  await settle()
  expect(agent.seen.length).toBeGreaterThan(0)
  await second.close()
})

test('R1: a ledger that fails during the recovery does not make it forget what it found', async () => {
  for (let position = 0; position < 6; position += 1) {
    const inner = memoryLedger()
    const clock = manualClock()
    const first = await MemoryLifecycle.open({ ledger: persistentLedger(inner), clock })
    await first.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }) })
    await first.close()
    const ledger = faultyLedger(persistentLedger(inner))
    const callOff = failAt(ledger, position)
    const agent = scriptedAgent({ agentId: 'a' })
    const second = await MemoryLifecycle.open({ ledger, clock, revive: () => agent })
    await settle()
    await clock.advance(10_000)
    callOff()
    expect(agent.seen, `position ${position}`).toMatchObject([{ from: 1, to: 1 }])
    expect(await second.hasUncommittedWork('s'), `position ${position}`).toBe(false)
    await second.close()
  }
})
