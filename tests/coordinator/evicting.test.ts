import { expect, test } from 'vitest'
import { scriptedAgent } from '../../src/testing/index.js'
import { openLifecycle, settle, tick } from '../support/lifecycle.js'

test('B5: whenever a turn begins during an eviction, the eviction waits for it and then closes the agent, once', async () => {
  let cameTooLate = false
  for (let moment = 0; !cameTooLate; moment += 1) {
    expect(moment, 'the eviction never ended').toBeLessThan(500)
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent()
    await lifecycle.markTurnCompleted('s', { agent })
    const evicted = lifecycle.evict('s')
    for (let step = 0; step < moment; step += 1) await tick()
    cameTooLate = agent.closes > 0
    const release = lifecycle.hold('s')
    await settle()
    expect(agent.closes, `held at moment ${moment}`).toBe(cameTooLate ? 1 : 0)
    release()
    expect(await evicted, `held at moment ${moment}`).toEqual({ closed: true, clean: true, remaining: [] })
    expect(agent.closes).toBe(1)
  }
})

test('B4: whenever its signal comes, an eviction that has not closed the agent yet leaves it open and current', async () => {
  let cameTooLate = false
  for (let moment = 0; !cameTooLate; moment += 1) {
    expect(moment, 'the eviction never ended').toBeLessThan(500)
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'mine' })
    await lifecycle.markTurnCompleted('s', { agent })
    const controller = new AbortController()
    const evicted = lifecycle.evict('s', { signal: controller.signal })
    for (let step = 0; step < moment; step += 1) await tick()
    cameTooLate = agent.closes > 0
    controller.abort()
    expect((await evicted).closed, `aborted at moment ${moment}`).toBe(cameTooLate)
    expect(agent.closes).toBe(cameTooLate ? 1 : 0)
    expect((await lifecycle.inspect('s'))?.agentId).toBe(cameTooLate ? undefined : 'mine')
  }
})

test('B4: an eviction that names an agent closes that one and leaves the one that has taken its place', async () => {
  const { lifecycle } = await openLifecycle()
  const [old, fresh] = [scriptedAgent(), scriptedAgent()]
  await lifecycle.markTurnCompleted('s', { agent: old })
  lifecycle.registerAgent('s', fresh)
  expect(await lifecycle.evict('s', { agent: old })).toEqual({ closed: true, clean: true, remaining: [] })
  expect([old.seen.length, old.closes, fresh.closes]).toEqual([1, 1, 0])
  expect(await lifecycle.evict('s', { agent: old })).toMatchObject({ closed: false })
  expect(old.closes).toBe(1)
  expect(await lifecycle.evict('s')).toMatchObject({ closed: true })
  expect(fresh.closes).toBe(1)
})

test('B4: an agent that was replaced and owns nothing is closed by an eviction that names it', async () => {
  const { lifecycle } = await openLifecycle()
  const [old, fresh] = [scriptedAgent(), scriptedAgent()]
  lifecycle.registerAgent('s', old)
  lifecycle.registerAgent('s', fresh)
  await lifecycle.hasUncommittedWork('s')
  expect(await lifecycle.evict('s', { agent: old })).toMatchObject({ closed: true })
  expect([old.closes, fresh.closes]).toEqual([1, 0])
})

test('B4: a signal also ends the wait for an agent that hangs in close', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent()
  agent.close = () => new Promise(() => undefined)
  await lifecycle.markTurnCompleted('s', { agent })
  const controller = new AbortController()
  const evicted = lifecycle.evict('s', { signal: controller.signal })
  await settle()
  controller.abort()
  expect(await evicted).toMatchObject({ clean: true })
})
