import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type LifecycleOptions, MemoryLifecycle } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { gate, scriptedAgent, steps } from '../../src/testing/index.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { settle } from '../support/lifecycle.js'

function freshPath(): string {
  return join(temporaryDirectory(), 'ledger.db')
}

/** A ledger whose process can die: from then on nothing reaches the file, whoever still waits for it. */
function mortal(path: string): { ledger: Ledger; die: () => Promise<void> } {
  const inner = sqliteLedger({ path })
  let isDead = false
  const ledger = new Proxy(inner, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]): unknown =>
        isDead ? new Promise(() => undefined) : (value as (...all: unknown[]) => unknown).apply(target, args)
    },
  })
  return {
    ledger,
    die: () => {
      isDead = true
      return inner.close()
    },
  }
}

/** One life of a process. */
async function live(path: string, options: LifecycleOptions = {}): Promise<MemoryLifecycle> {
  const lifecycle = await MemoryLifecycle.open({
    ledger: sqliteLedger({ path }),
    retry: { attempts: 8, minDelayMs: 1, maxDelayMs: 5 },
    ...options,
  })
  onTestFinished(() => lifecycle.close())
  return lifecycle
}

/** Bounded and named, as every wait in a test. */
async function until(isTrue: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let turns = 0; !(await isTrue()); turns += 1) {
    if (turns > 2_000) throw new Error(`waited in vain: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

const isClean = async (lifecycle: MemoryLifecycle): Promise<boolean> => (await lifecycle.health()).dirtySessions === 0

test('R1: with revive, what earlier processes left is committed in the background, under the same owner, with its text', async () => {
  const path = freshPath()
  const first = await live(path)
  await first.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'old' }), messages: ['one'] })
  await first.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'new' }), messages: ['two'] })
  await first.close()

  const asked: unknown[] = []
  const revived = new Map(['old', 'new'].map((id) => [id, scriptedAgent({ agentId: id, readsTurns: true })]))
  const second = await live(path, {
    revive: (owner) => {
      asked.push(owner)
      return revived.get(owner.agentId ?? '')
    },
  })
  await until(() => isClean(second), 'the left work is committed')
  expect(asked).toEqual([
    { sessionId: 's', agentId: 'old' },
    { sessionId: 's', agentId: 'new' },
  ])
  expect(revived.get('old')?.seen).toMatchObject([
    { from: 1, to: 1, reason: 'recovery', turns: [{ messages: ['one'] }] },
  ])
  expect(revived.get('new')?.seen).toMatchObject([
    { from: 2, to: 2, reason: 'recovery', turns: [{ messages: ['two'] }] },
  ])
})

test('R1: work is taken up oldest first, under the concurrency limit, and each session is announced', async () => {
  const path = freshPath()
  let now = 1_000
  const clock = { now: () => now, setTimer: () => () => undefined }
  const first = await live(path, { clock })
  for (const sessionId of ['third', 'first', 'second']) {
    now = { first: 2_000, second: 3_000, third: 4_000 }[sessionId] ?? 0
    await first.markTurnCompleted(sessionId, { agent: scriptedAgent({ agentId: 'a' }), messages: ['x'] })
  }
  await first.close()

  const order: string[] = []
  let inFlight = 0
  let most = 0
  const agent = scriptedAgent({
    agentId: 'a',
    otherwise: async ({ sessionId }) => {
      order.push(sessionId)
      most = Math.max(most, (inFlight += 1))
      await settle()
      inFlight -= 1
    },
  })
  const announced: unknown[] = []
  const second = await MemoryLifecycle.open({ ledger: sqliteLedger({ path }), revive: () => agent, concurrency: 1 })
  onTestFinished(() => second.close())
  second.on('session:recovered', (event) => announced.push(event))
  await until(() => isClean(second), 'the left work is committed')
  expect(order).toEqual(['first', 'second', 'third'])
  expect(most).toBe(1)
  expect(announced).toMatchObject([
    { sessionId: 'first', from: 1, to: 1, segments: 1 },
    { sessionId: 'second', from: 1, to: 1, segments: 1 },
    { sessionId: 'third', from: 1, to: 1, segments: 1 },
  ])
})

test('R1: without revive the work waits for an agent with the same id to register for that session', async () => {
  const path = freshPath()
  const first = await live(path)
  await first.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'a' }), messages: ['x'] })
  await first.close()

  const second = await live(path)
  const stranger = scriptedAgent({ agentId: 'b' })
  second.registerAgent('s', stranger)
  expect(await second.commit('s')).toMatchObject({ status: 'unowned', from: 1, to: 1, agentId: 'a' })
  const owner = scriptedAgent({ agentId: 'a' })
  second.registerAgent('s', owner)
  await until(() => isClean(second), 'the owner has committed its work')
  expect(owner.seen).toHaveLength(1)
  expect(stranger.seen).toEqual([])
})

test('R1: work that never had an owner goes to revive without an agentId', async () => {
  const path = freshPath()
  const first = await live(path)
  await first.markTurnCompleted('s', { messages: ['x'] })
  await first.close()
  const agent = scriptedAgent({ agentId: 'finder' })
  const owners: unknown[] = []
  const second = await live(path, {
    revive: (owner) => {
      owners.push(owner)
      return agent
    },
  })
  await until(() => isClean(second), 'the ownerless work is committed')
  expect(owners).toEqual([{ sessionId: 's' }])
  expect(agent.seen).toHaveLength(1)
})

test('R2, R4, C10: a claim of a dead process does not block; the segment is offered again with the same key and the next attempt', async () => {
  const path = freshPath()
  const { ledger, die } = mortal(path)
  const first = await MemoryLifecycle.open({ ledger })
  const hanging = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
  await first.markTurnCompleted('s', { agent: hanging, messages: ['x'] })
  void first.commit('s')
  await until(() => hanging.seen.length === 1, 'the provider is called')
  await die()

  const agent = scriptedAgent({ agentId: 'a' })
  const second = await live(path, { revive: () => agent })
  await until(() => isClean(second), 'the claimed segment is committed')
  expect(agent.seen).toHaveLength(1)
  expect(agent.seen[0]?.idempotencyKey).toBe(hanging.seen[0]?.idempotencyKey)
  expect([hanging.seen[0]?.attempt, agent.seen[0]?.attempt]).toEqual([1, 2])
})

test('R2: a late answer of the old process cannot clear newer work', async () => {
  const path = freshPath()
  const late = gate()
  const { ledger, die } = mortal(path)
  const first = await MemoryLifecycle.open({ ledger })
  const agent = scriptedAgent({ agentId: 'a' })
  agent.script.push(late.step)
  await first.markTurnCompleted('s', { agent, messages: ['x'] })
  void first.commit('s')
  await late.entered
  await die()
  const second = await live(path)
  await second.markTurnCompleted('s', { agent: scriptedAgent({ agentId: 'b' }), messages: ['y'] })
  late.open()
  await settle()
  expect(await second.inspect('s')).toMatchObject({ generation: 2, watermark: 0 })
})

test('R1, C11: receipts go on being settled after a restart, and the text stays until then', async () => {
  const path = freshPath()
  const first = await live(path)
  const accepting = scriptedAgent({ agentId: 'a', otherwise: steps.accept('receipt-7') })
  accepting.settleScript.push(...Array.from({ length: 50 }, () => steps.answer({ status: 'pending' })))
  await first.markTurnCompleted('s', { agent: accepting, messages: ['x'] })
  expect(await first.commit('s')).toMatchObject({ status: 'accepted' })
  await first.close()

  const ledger = sqliteLedger({ path })
  await ledger.open()
  const texts: unknown[] = []
  for await (const { messages } of ledger.outbox('s', 1, 1)) texts.push(messages)
  expect(texts).toEqual(['["x"]'])
  await ledger.close()

  const agent = scriptedAgent({ agentId: 'a' })
  const second = await live(path, { revive: () => agent })
  await until(async () => (await second.health()).unsettled === 0, 'the receipt is settled')
  expect(agent.settled).toEqual([{ receipt: 'receipt-7', idempotencyKey: accepting.seen[0]?.idempotencyKey }])
  expect(await second.inspect('s')).toMatchObject({ watermark: 1, segments: [] })
})

test('C12: a segment that kills its process every time is parked in the end', async () => {
  const path = freshPath()
  const retry = { attempts: 3, minDelayMs: 1, maxDelayMs: 2 }
  const hanging = scriptedAgent({ agentId: 'a', otherwise: steps.hang() })
  for (let lives = 1; lives <= 3; lives += 1) {
    const { ledger, die } = mortal(path)
    const lifecycle = await MemoryLifecycle.open({ ledger, retry, revive: () => hanging })
    if (lives === 1) {
      await lifecycle.markTurnCompleted('s', { agent: hanging, messages: ['x'] })
      lifecycle.switchSession('s', 'next')
    }
    await until(() => hanging.seen.length === lives, `life ${lives} offers the segment`)
    await die()
  }
  const last = await live(path, { retry, revive: () => hanging })
  await until(async () => (await last.health()).parked === 1, 'the segment is parked')
  expect(hanging.seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
})

test('L8: generations go on after a restart, for committed and discarded sessions too', async () => {
  const path = freshPath()
  const agent = scriptedAgent({ agentId: 'a' })
  const first = await live(path)
  for (const sessionId of ['committed', 'discarded']) {
    expect(await first.markTurnCompleted(sessionId, { agent })).toBe(1)
    await first.commit(sessionId)
  }
  expect(await first.discard('discarded')).toBe(true)
  await first.close()
  const second = await live(path)
  expect(await second.markTurnCompleted('committed', { agent })).toBe(2)
  expect(await second.markTurnCompleted('discarded', { agent })).toBe(2)
})

test('R5: no text that a provider, a host or an id brings about makes a session unreadable after a restart', async () => {
  const path = freshPath()
  const unstorable = ['a\0b', 'a\ud800b', `${'x'.repeat(198)}🌊`]
  const words = [...unstorable, 7 as unknown as string]
  const first = await live(path, {
    describeError: (error) => words[(error as { index: number }).index] ?? 'another',
    revive: () => scriptedAgent({ agentId: 'stranger' }),
  })
  for (const index of words.keys()) {
    const agent = scriptedAgent({ agentId: `said ${index}`, otherwise: steps.reject({ index }) })
    await first.markTurnCompleted(`said ${index}`, { agent })
    expect(await first.commit(`said ${index}`)).toMatchObject({ status: 'failed' })
  }
  for (const [index, receipt] of unstorable.entries()) {
    const agent = scriptedAgent({ agentId: 'a', otherwise: steps.accept(receipt) })
    await first.markTurnCompleted(`receipt ${index}`, { agent })
    expect((await first.commit(`receipt ${index}`)).status).toMatch(index === 2 ? 'accepted' : 'failed')
  }
  await first.close()
  // Our own messages name ids, and are cut to a length.
  const second = await live(path, {
    retry: { minDelayMs: 300_000 },
    revive: () => scriptedAgent({ agentId: 'stranger' }),
  })
  for (const before of ['', 'x']) {
    const agent = scriptedAgent({ agentId: `${before}${'🌊'.repeat(100)}`, otherwise: steps.reject(new Error('down')) })
    await second.markTurnCompleted(`cut ${before}`, { agent })
    await second.evict(`cut ${before}`)
    expect(await second.commit(`cut ${before}`)).toMatchObject({ error: { code: 'REVIVED_STRANGER' } })
  }
  await second.close()
  const last = await live(path)
  const found: string[] = []
  for await (const { sessionId, segments } of last.sessions()) if (segments.length === 1) found.push(sessionId)
  expect(found).toHaveLength(words.length + unstorable.length + 2)
})
