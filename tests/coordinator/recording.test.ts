import { expect, test } from 'vitest'
import { scriptedAgent, steps } from '../../src/testing/index.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

const MALFORMED: readonly [string, unknown][] = [
  ['a number', 7],
  ['an object', {}],
  ['513 characters', 'x'.repeat(513)],
  ['a control character', 'a\u0000b'],
  ['a delete character', 'a\u007fb'],
  ['a lone surrogate', 'a\ud800b'],
]

test.each([undefined, null, ''])('L1: %o as a session id is a safe no-op everywhere', async (nothing) => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent()
  const id = nothing as unknown as string
  lifecycle.registerAgent(id, agent)
  lifecycle.unregisterAgent(id)
  lifecycle.switchSession(id, 'next')
  expect(await lifecycle.markTurnCompleted(id, { agent })).toBe(0)
  expect(await lifecycle.hasUncommittedWork(id)).toBe(false)
  expect(await lifecycle.commit(id, { agent })).toEqual({ status: 'clean' })
  expect(await lifecycle.flush(id)).toMatchObject({ committed: 0, clean: true })
  expect(await lifecycle.evict(id)).toMatchObject({ closed: false, clean: true })
  expect(await lifecycle.discard(id)).toBe(true)
  expect(await lifecycle.retractTurns(id, 1)).toEqual({ retracted: 0, offered: 0 })
  expect(await lifecycle.inspect(id)).toBeUndefined()
  await lifecycle.rotate(id, 'other')
  expect(agent.seen).toEqual([])
  expect(agent.closes).toBe(0)
})

test.each(MALFORMED)('L1: %s as a session id is a TypeError before anything is recorded', async (_name, id) => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent()
  const bad = id as string
  await expect(lifecycle.markTurnCompleted(bad, { agent })).rejects.toThrow(TypeError)
  await expect(lifecycle.commit(bad)).rejects.toThrow(TypeError)
  expect(() => lifecycle.registerAgent(bad, agent)).toThrow(TypeError)
  expect(await lifecycle.health()).toMatchObject({ dirtySessions: 0 })
})

test('L1: ids with slashes, spaces, emoji and 512 units are ordinary ids', async () => {
  const { lifecycle } = await openLifecycle()
  for (const id of ['../../etc/passwd', 'a b', '🐙/🌊', 'x'.repeat(512)]) {
    expect(await lifecycle.markTurnCompleted(id, { agent: scriptedAgent() })).toBe(1)
    expect(await lifecycle.commit(id)).toMatchObject({ status: 'committed' })
  }
})

test('L2: registering an agent makes it current and nothing else', async () => {
  const { lifecycle } = await openLifecycle()
  const first = scriptedAgent({ agentId: 'first' })
  await lifecycle.markTurnCompleted('s', { agent: first })
  lifecycle.registerAgent('s', scriptedAgent({ agentId: 'second' }))
  expect(await lifecycle.inspect('s')).toMatchObject({ agentId: 'second', segments: [{ owner: 'first' }] })
  lifecycle.registerAgent('fresh', first)
  expect(await lifecycle.hasUncommittedWork('fresh')).toBe(false)
  expect(await lifecycle.commit('fresh')).toEqual({ status: 'clean' })
})

test('L3: unregistering forgets the current agent only; its dirty segment keeps its live owner', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  await lifecycle.markTurnCompleted('s', { agent })
  lifecycle.unregisterAgent('s')
  expect(await lifecycle.inspect('s')).not.toHaveProperty('agentId')
  expect(await lifecycle.commit('s')).toMatchObject({ status: 'committed', from: 1, to: 1 })
  expect(agent.seen).toHaveLength(1)
})

test('L4: a completed turn raises the generation by one; its owner is the given agent, else the current one, else nobody', async () => {
  const { lifecycle } = await openLifecycle()
  expect(await lifecycle.markTurnCompleted('s')).toBe(1)
  expect(await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'given' }) })).toBe(2)
  lifecycle.registerAgent('s', scriptedAgent({ agentId: 'current' }))
  expect(await lifecycle.markTurnCompleted('s')).toBe(3)
  const snapshot = await lifecycle.inspect('s')
  expect(snapshot?.segments.map(({ owner }) => owner)).toEqual([undefined, 'given', 'current'])
  expect(snapshot?.agentId).toBe('current')
})

test('L5: the last segment grows for the same owner until it was offered once; then a new one starts', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  agent.script.push(steps.reject(new Error('down')))
  await lifecycle.markTurnCompleted('s', { agent })
  await lifecycle.markTurnCompleted('s')
  expect((await lifecycle.commit('s')).status).toBe('failed')
  await lifecycle.markTurnCompleted('s')
  const snapshot = await lifecycle.inspect('s')
  expect(snapshot?.segments.map(({ from, to }) => [from, to])).toEqual([
    [1, 2],
    [3, 3],
  ])
})

test('L6: a session has uncommitted work exactly while some generation is neither committed nor accepted', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  lifecycle.registerAgent('s', agent)
  expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  await lifecycle.markTurnCompleted('s')
  expect(await lifecycle.hasUncommittedWork('s')).toBe(true)
  agent.script.push(steps.accept('receipt'))
  await lifecycle.commit('s')
  expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
})

test('L7: an ephemeral turn returns the current generation and changes nothing, not even the current agent', async () => {
  const { lifecycle } = await openLifecycle()
  await lifecycle.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }) })
  expect(await lifecycle.markTurnCompleted('s', { ephemeral: true, agent: scriptedAgent({ agentId: 'b' }) })).toBe(1)
  expect(await lifecycle.inspect('s')).toMatchObject({ generation: 1, agentId: 'a' })
})

test('L9: messages handed over with the mark reach the provider, and leave the outbox with the commit', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
  const messages = [{ role: 'user', content: 'hello' }]
  await lifecycle.markTurnCompleted('s', { agent, messages })
  messages[0]!.content = 'changed afterwards'
  await lifecycle.commit('s')
  expect(agent.seen[0]?.turns).toMatchObject([{ generation: 1, messages: [{ role: 'user', content: 'hello' }] }])
  await lifecycle.markTurnCompleted('s', { messages: ['second'] })
  await lifecycle.commit('s')
  expect(agent.seen[1]?.turns?.map(({ messages: each }) => each)).toEqual([['second']])
})

test('L9: messages that do not survive JSON are a TypeError, and the turn is not recorded', async () => {
  const { lifecycle } = await openLifecycle()
  const cycle: unknown[] = []
  cycle.push(cycle)
  await expect(lifecycle.markTurnCompleted('s', { messages: cycle })).rejects.toThrow(/survive JSON/)
  await expect(lifecycle.markTurnCompleted('s', { messages: [1n] })).rejects.toThrow(TypeError)
  await expect(lifecycle.markTurnCompleted('s', { messages: 'text' as unknown as [] })).rejects.toThrow(TypeError)
  expect(await lifecycle.markTurnCompleted('s')).toBe(1)
})

test('L11: of several live objects with one id, the one registered last is called', async () => {
  const { lifecycle } = await openLifecycle()
  const old = scriptedAgent({ agentId: 'same' })
  const young = scriptedAgent({ agentId: 'same' })
  await lifecycle.markTurnCompleted('s', { agent: old })
  lifecycle.registerAgent('s', young)
  await lifecycle.commit('s')
  expect([old.seen.length, young.seen.length]).toEqual([0, 1])
})

test('L11: of several objects with one id the one given last is called again', async () => {
  const { lifecycle } = await openLifecycle()
  const [old, young] = [scriptedAgent({ agentId: 'same' }), scriptedAgent({ agentId: 'same' })]
  young.script.push(steps.reject(new Error('down')))
  await lifecycle.markTurnCompleted('s', { agent: old })
  await lifecycle.commit('s', { agent: young })
  await lifecycle.commit('s')
  expect([old.seen.length, young.seen.length]).toEqual([0, 2])
})

test('L11: agents without an id are told apart for their lifetime', async () => {
  const { lifecycle } = await openLifecycle()
  const one = scriptedAgent()
  const other = scriptedAgent()
  await lifecycle.markTurnCompleted('s', { agent: one })
  await lifecycle.markTurnCompleted('s', { agent: other })
  await lifecycle.markTurnCompleted('s', { agent: one })
  await lifecycle.flush('s')
  expect(one.seen.map(({ from, to }) => [from, to])).toEqual([
    [1, 1],
    [3, 3],
  ])
  expect(other.seen.map(({ from, to }) => [from, to])).toEqual([[2, 2]])
})

test('L12: marking a turn id again while it is uncommitted gives the same generation and changes nothing', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
  expect(await lifecycle.markTurnCompleted('s', { agent, turnId: 't1', messages: ['one'] })).toBe(1)
  expect(await lifecycle.markTurnCompleted('s', { turnId: 't1', messages: ['again'] })).toBe(1)
  expect(await lifecycle.markTurnCompleted('s', { turnId: 't2' })).toBe(2)
  await lifecycle.commit('s')
  expect(agent.seen[0]?.turns?.map(({ messages }) => messages)).toEqual([['one']])
  expect(await lifecycle.markTurnCompleted('s', { turnId: 't1' })).toBe(3)
})

test('L12: marking a known turn id with another agent does not change the current agent either', async () => {
  const { lifecycle } = await openLifecycle()
  const [first, current] = [scriptedAgent({ agentId: 'first' }), scriptedAgent({ agentId: 'current' })]
  await lifecycle.markTurnCompleted('s', { agent: first, turnId: 't1' })
  lifecycle.registerAgent('s', current)
  expect(await lifecycle.markTurnCompleted('s', { agent: first, turnId: 't1' })).toBe(1)
  await lifecycle.markTurnCompleted('s')
  expect(await lifecycle.inspect('s')).toMatchObject({
    agentId: 'current',
    segments: [{ owner: 'first' }, { owner: 'current' }],
  })
  expect(await lifecycle.flush('s')).toMatchObject({ committed: 2, clean: true })
  expect(await lifecycle.markTurnCompleted('s', { agent: first, turnId: 't1' })).toBe(3)
  expect(await lifecycle.inspect('s')).toMatchObject({ agentId: 'first' })
})

test('L12: a known turn id brings no agent back that was unregistered or evicted', async () => {
  const { lifecycle, clock } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  agent.script.push(steps.reject(new Error('down')))
  await lifecycle.markTurnCompleted('s', { agent, turnId: 't' })
  expect(await lifecycle.evict('s')).toMatchObject({ closed: false, clean: false })
  expect(await lifecycle.markTurnCompleted('s', { agent, turnId: 't' })).toBe(1)
  expect(await lifecycle.inspect('s')).not.toHaveProperty('agentId')
  await clock.advance(10_000)
  expect([agent.seen.length, agent.closes]).toEqual([2, 1])
})

test('L12: whoever registers while a known turn id is on its way stays the current agent', async () => {
  const { lifecycle } = await openLifecycle()
  const [first, second, third] = ['first', 'second', 'third'].map((agentId) => scriptedAgent({ agentId }))
  await lifecycle.markTurnCompleted('s', { agent: first!, turnId: 't' })
  lifecycle.registerAgent('s', second!)
  const again = lifecycle.markTurnCompleted('s', { agent: first!, turnId: 't' })
  lifecycle.registerAgent('s', third!)
  expect(await again).toBe(1)
  expect(await lifecycle.inspect('s')).toMatchObject({ agentId: 'third' })
})

test('L4, L12: of marks that nobody waits for, a new one among known ones makes its agent the current one', async () => {
  for (const order of [
    ['known', 'new', 'known too'],
    ['known', 'known too', 'new'],
    ['new', 'known', 'known too'],
  ]) {
    const { lifecycle } = await openLifecycle()
    const agent = scriptedAgent({ agentId: 'a' })
    for (const turnId of ['known', 'known too']) await lifecycle.markTurnCompleted('s', { agent, turnId })
    lifecycle.registerAgent('s', scriptedAgent({ agentId: 'b' }))
    await Promise.all(order.map((turnId) => lifecycle.markTurnCompleted('s', { agent, turnId })))
    expect(await lifecycle.inspect('s'), order.join()).toMatchObject({ generation: 3, agentId: 'a' })
  }
})

test('L2, L12: an agent that is registered while its known turn id is on its way stays the current one', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  await lifecycle.markTurnCompleted('s', { agent, turnId: 't' })
  lifecycle.registerAgent('s', scriptedAgent({ agentId: 'b' }))
  const again = lifecycle.markTurnCompleted('s', { agent, turnId: 't' })
  lifecycle.registerAgent('s', agent)
  await again
  expect(await lifecycle.inspect('s')).toMatchObject({ agentId: 'a' })
})

test('L12: a known turn id leaves a rotated session to the agent that moved on', async () => {
  const { lifecycle } = await openLifecycle()
  const [moved, other] = [scriptedAgent({ agentId: 'moved' }), scriptedAgent({ agentId: 'other' })]
  other.script.push(steps.reject(new Error('down')))
  await lifecycle.markTurnCompleted('old', { agent: other, turnId: 't' })
  lifecycle.registerAgent('old', moved)
  await lifecycle.rotate('old', 'new')
  await settle()
  expect(await lifecycle.markTurnCompleted('old', { agent: other, turnId: 't' })).toBe(1)
  await lifecycle.markTurnCompleted('old')
  expect(await lifecycle.inspect('old')).toMatchObject({ segments: [{ owner: 'other' }, { owner: 'moved' }] })
})

test('L12: a mark whose signal is aborted rejects with a code and says that the turn id makes asking again safe', async () => {
  const { lifecycle } = await openLifecycle()
  const signal = AbortSignal.abort()
  await expect(lifecycle.markTurnCompleted('s', { signal, turnId: 't' })).rejects.toMatchObject({ code: 'ABORTED' })
  await settle()
  expect(await lifecycle.markTurnCompleted('s', { turnId: 't' })).toBe(1)
})

test('L13: retracting withdraws what was never offered, with its text, and never reuses the numbers', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a', readsTurns: true })
  for (const text of ['one', 'two', 'three']) await lifecycle.markTurnCompleted('s', { agent, messages: [text] })
  expect(await lifecycle.retractTurns('s', 2)).toEqual({ retracted: 2, offered: 0 })
  expect(await lifecycle.markTurnCompleted('s', { messages: ['four'] })).toBe(4)
  await lifecycle.commit('s')
  expect(agent.seen).toHaveLength(1)
  expect(agent.seen[0]).toMatchObject({ from: 1, to: 4 })
  expect(agent.seen[0]?.turns?.map(({ messages }) => messages[0])).toEqual(['one', 'four'])
  expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
})

test('L13: what was already offered stays, and the answer says how many', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent({ agentId: 'a' })
  agent.script.push(steps.reject(new Error('down')))
  await lifecycle.markTurnCompleted('s', { agent })
  await lifecycle.markTurnCompleted('s')
  await lifecycle.commit('s')
  await lifecycle.markTurnCompleted('s')
  expect(await lifecycle.retractTurns('s', 2)).toEqual({ retracted: 1, offered: 1 })
  expect(await lifecycle.retractTurns('s', 2)).toEqual({ retracted: 0, offered: 1 })
  expect(await lifecycle.inspect('s')).toMatchObject({ generation: 3, segments: [{ from: 1, to: 2 }] })
})

test('L13: retracting everything leaves a clean session', async () => {
  const { lifecycle } = await openLifecycle()
  await lifecycle.markTurnCompleted('s', { agent: scriptedAgent() })
  expect(await lifecycle.retractTurns('s', 1)).toEqual({ retracted: 1, offered: 0 })
  expect(await lifecycle.hasUncommittedWork('s')).toBe(false)
  expect(await lifecycle.inspect('s')).toMatchObject({ generation: 1, watermark: 1, segments: [] })
  await expect(lifecycle.retractTurns('s', 1.5)).rejects.toThrow(TypeError)
})
