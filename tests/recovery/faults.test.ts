import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { MemoryLifecycle } from '../../src/index.js'
import type { Changes } from '../../src/ledger/sqlite/changes.js'
import { LocalHost, type StoreCalls } from '../../src/ledger/sqlite/host.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'
import { OUTBOX_COLUMNS } from '../../src/ledger/sqlite/outbox-row.js'
import { SEGMENT_COLUMNS } from '../../src/ledger/sqlite/segment-row.js'
import { scriptedAgent } from '../../src/testing/index.js'
import { seededRandom } from '../../src/testing/ledger-model.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { WatchedHost } from '../support/watched-host.js'

const KEY = SEGMENT_COLUMNS.indexOf('idempotency_key')
const SESSION = OUTBOX_COLUMNS.indexOf('session')
const GENERATION = OUTBOX_COLUMNS.indexOf('generation')

/** What the file holds for certain, as far as this test needs it: generations by session, and keys of sealed segments. */
class Durable {
  readonly keys = new Set<string>()
  readonly #generations = new Map<number, number>()
  readonly #rows = new Map<string, number>()

  note(changes: Changes): void {
    for (const [id, sessionId, generation] of changes.inserted) {
      this.#rows.set(String(sessionId), Number(id))
      this.#generations.set(Number(id), Number(generation))
    }
    for (const row of changes.updated) this.#generations.set(Number(row.at(-1)), Number(row[1]))
    for (const row of changes.marked) this.#generations.set(Number(row.at(-1)), Number(row[0]))
    const { appended } = changes
    for (let at = 0; at < appended.length; at += OUTBOX_COLUMNS.length) {
      this.#generations.set(Number(appended[at + SESSION]), Number(appended[at + GENERATION]))
    }
    for (const row of changes.segments) this.keys.add(String(row[KEY]))
  }

  generation(sessionId: string): number {
    return this.#generations.get(this.#rows.get(sessionId) ?? 0) ?? 0
  }
}

test('L10, V1, C14: with a disk that fails at random, no event and no provider call is about work that is not durable', async () => {
  const random = seededRandom(11)
  const path = join(temporaryDirectory(), 'ledger.db')
  const durable = new Durable()
  const calls: (keyof StoreCalls)[] = []
  const fault = (call: keyof StoreCalls): 'before' | 'after' | undefined =>
    call !== 'apply' || random() > 0.02 ? undefined : random() < 0.5 ? 'before' : 'after'
  const ledger = new SqliteLedger({ path }, (at) => {
    const inner = new LocalHost({ path, allowNetworkFileSystem: false, at })
    return new WatchedHost(inner, calls, fault, (changes) => durable.note(changes))
  })
  const lifecycle = await MemoryLifecycle.open({ ledger, retry: { attempts: 1_000_000, minDelayMs: 1, maxDelayMs: 4 } })
  onTestFinished(() => lifecycle.close())

  const early: string[] = []
  lifecycle.on('turn:recorded', ({ sessionId, generation }) => {
    if (durable.generation(sessionId) < generation) early.push(`event of ${sessionId}:${generation}`)
  })
  const agent = scriptedAgent({
    agentId: 'a',
    otherwise: ({ sessionId, to, idempotencyKey }) => {
      if (!durable.keys.has(idempotencyKey)) early.push(`call of ${sessionId} with ${idempotencyKey}`)
      if (durable.generation(sessionId) < to) early.push(`call of ${sessionId} up to ${to}`)
      if (random() < 0.1) throw new Error('not now')
    },
  })
  let refused = 0
  const insist = async (sessionId: string, turnId: string): Promise<number> => {
    for (;;) {
      try {
        return await lifecycle.markTurnCompleted(sessionId, { agent, turnId, messages: [turnId] })
      } catch (error) {
        expect(error).toMatchObject({ code: 'LEDGER_FAILED' })
        refused += 1
      }
    }
  }
  const converse = async (sessionId: string): Promise<void> => {
    for (let turn = 1; turn <= 600; turn += 1) {
      expect(await insist(sessionId, `${sessionId}-${turn}`)).toBe(turn)
      if (turn % 7 === 0) lifecycle.switchSession(sessionId, 'elsewhere')
    }
  }
  const ids = ['a', 'b', 'c', 'd']
  await Promise.all(ids.map(converse))
  for (let rounds = 0; rounds < 50; rounds += 1) {
    const { remaining } = await lifecycle.drain({ deadlineMs: 10_000 }).catch(() => ({ remaining: ['unknown'] }))
    if (remaining.length === 0) break
  }
  expect(early).toEqual([])
  for (const sessionId of ids) {
    const seen = await lifecycle.inspect(sessionId).catch(() => lifecycle.inspect(sessionId))
    expect(seen).toMatchObject({ generation: 600, watermark: 600, segments: [] })
  }
  // Every range was offered under one key, and together they are everything, without a gap.
  const ranges = new Map<string, string>()
  for (const { sessionId, from, to, idempotencyKey } of agent.seen) {
    const range = `${sessionId}:${from}-${to}`
    expect(ranges.get(range) ?? idempotencyKey).toBe(idempotencyKey)
    ranges.set(range, idempotencyKey)
  }
  expect(refused).toBeGreaterThan(10)
  process.stdout.write(`a failing disk: ${calls.length} calls to the file, ${refused} marks refused and repeated\n`)
})
