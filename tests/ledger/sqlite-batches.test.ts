import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { answer, claimSegment, recordTurn, succeed } from '../../src/core/index.js'
import type { SqlValue } from '../../src/base/sqlite.js'
import { noChanges } from '../../src/ledger/sqlite/changes.js'
import { LocalHost, type StoreCalls } from '../../src/ledger/sqlite/host.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'
import { pushOutbox } from '../../src/ledger/sqlite/outbox-row.js'
import { WorkerHost } from '../../src/ledger/sqlite/worker-host.js'
import { claimRequest, seededRandom } from '../../src/testing/ledger-model.js'
import { recordingLogger } from '../../src/testing/index.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { type Fault, WatchedHost } from '../support/watched-host.js'

function watch(
  fault: Fault,
  Host: typeof LocalHost | typeof WorkerHost,
): { ledger: SqliteLedger; calls: (keyof StoreCalls)[] } {
  const path = join(temporaryDirectory(), 'ledger.db')
  const calls: (keyof StoreCalls)[] = []
  const ledger = new SqliteLedger(
    { path, logger: recordingLogger() },
    (at) => new WatchedHost(new Host({ path, allowNetworkFileSystem: false, at }), calls, fault),
  )
  onTestFinished(() => ledger.close())
  return { ledger, calls }
}

async function openWatched(
  fault: Fault = () => undefined,
): Promise<{ ledger: SqliteLedger; calls: (keyof StoreCalls)[] }> {
  const watched = watch(fault, LocalHost)
  await watched.ledger.open()
  return watched
}

const turn = (index: number, turnId?: string): Parameters<typeof recordTurn>[1] => ({
  ...{ owner: 'agent', at: index, turnId, messages: JSON.stringify([`text ${index}`]) },
})

const countApplies = (calls: readonly string[]): number => calls.filter((name) => name === 'apply').length

test('everything that arrives in one turn of the event loop shares one transaction', async () => {
  const { ledger, calls } = await openWatched()
  const marks = Array.from({ length: 1_000 }, (_, index) =>
    ledger.transact(`s${index % 300}`, (state) => recordTurn(state, turn(index))),
  )
  expect(countApplies(calls)).toBe(0)
  await Promise.all(marks)
  expect(countApplies(calls)).toBe(1)
})

test('a decision is made when its batch starts, not when it is asked for', async () => {
  const { ledger } = await openWatched()
  const order: string[] = []
  const first = ledger.transact('s', (state) => {
    order.push('decided')
    return recordTurn(state, turn(1))
  })
  order.push('asked')
  await first
  expect(order).toEqual(['asked', 'decided'])
})

test('L10: an answer that changes nothing is not let out before what it saw is durable', async () => {
  let failing = false
  const { ledger } = await openWatched((call) => (failing && call === 'apply' ? 'before' : undefined))
  failing = true
  const mark = ledger.transact('s', (state) => recordTurn(state, turn(1)))
  const read = ledger.transact('s', (state) => answer(state, state.generation))
  await expect(mark).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  await expect(read).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  failing = false
  expect((await ledger.transact('s', (state) => answer(state, state.generation))).result).toBe(0)
})

test('a batch that only reads writes nothing', async () => {
  const { ledger, calls } = await openWatched()
  await ledger.transact('s', (state) => answer(state, 1))
  expect(countApplies(calls)).toBe(0)
})

test('a finished session leaves memory and is read back when it is needed; an unfinished one is not read twice', async () => {
  const { ledger, calls } = await openWatched()
  const countLoads = (): number => calls.filter((name) => name === 'load').length
  await ledger.transact('s', (state) => recordTurn(state, turn(1)))
  await ledger.transact('s', (state) => claimSegment(state, claimRequest(ledger.instance, 'key', 1)))
  expect(countLoads()).toBe(1)
  await ledger.transact('s', (state) => succeed(state, { key: 'key', token: 1 }))
  expect((await ledger.transact('s', (state) => recordTurn(state, turn(2)))).result).toBe(2)
  expect(countLoads()).toBe(2)
})

test('a turn that is too large for a row is refused alone, before any effect', async () => {
  const { ledger } = await openWatched()
  const huge = { ...turn(1), messages: 'x'.repeat(64 * 1024 * 1024 + 1) }
  const refused = ledger.transact('s', (state) => recordTurn(state, huge))
  const other = ledger.transact('s', (state) => recordTurn(state, turn(1)))
  await expect(refused).rejects.toMatchObject({ code: 'TURN_TOO_LARGE' })
  expect((await other).result).toBe(1)
})

test('a failed batch rejects its own callers only, marks the ledger unhealthy, and the next call opens it anew', async () => {
  let faults: ('before' | 'after')[] = []
  const { ledger } = await openWatched((call) => (call === 'apply' ? faults.shift() : undefined))
  await ledger.transact('s', (state) => recordTurn(state, turn(1)))
  faults = ['before']
  const lost = [1, 2, 3].map((index) => ledger.transact(`s${index}`, (state) => recordTurn(state, turn(index))))
  const outcomes = await Promise.allSettled(lost)
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(ledger.health()).toEqual({ status: 'unhealthy', reason: 'disk I/O error' })
  expect((await ledger.transact('s', (state) => recordTurn(state, turn(2)))).result).toBe(2)
  expect(ledger.health()).toEqual({ status: 'ok' })
})

test('a batch whose fate is unknown is read back as it is: repeating a mark with its turn id is harmless', async () => {
  let faults: ('before' | 'after')[] = []
  const { ledger } = await openWatched((call) => (call === 'apply' ? faults.shift() : undefined))
  const mark = (): Promise<number> =>
    ledger.transact('s', (state) => recordTurn(state, turn(1, 'the-turn'))).then(({ result }) => result)
  faults = ['after']
  await expect(mark()).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  expect(await mark()).toBe(1)
  expect(await mark()).toBe(1)
})

test('C14: commits that fail at random over thousands of batches leave no gap, no reused generation, no stuck claim', async () => {
  const random = seededRandom(7)
  const { ledger, calls } = await openWatched((call) => {
    if (call !== 'apply' || random() >= 0.02) return undefined
    return random() < 0.5 ? 'before' : 'after'
  })
  const ids = ['a', 'b', 'c', 'd', 'e']
  const recorded = new Map(ids.map((id) => [id, new Map<string, number>()]))
  let refused = 0
  const insist = async <T>(call: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        expect(error).toMatchObject({ code: 'LEDGER_FAILED' })
        refused += 1
      }
    }
  }
  const live = async (sessionId: string): Promise<void> => {
    for (let index = 1; index <= 2_000; index += 1) {
      const turnId = `${sessionId}-${index}`
      const generation = await insist(
        async () => (await ledger.transact(sessionId, (state) => recordTurn(state, turn(index, turnId)))).result,
      )
      expect(generation).toBe(index)
      recorded.get(sessionId)?.set(turnId, generation)
      if (index % 10 === 0) {
        const key = `key ${sessionId} ${index}`
        const claim = await insist(() =>
          ledger.transact(sessionId, (state) => claimSegment(state, claimRequest(ledger.instance, key, index))),
        )
        const { result } = claim
        // What is claimed is durable: it is what the file says, key and all.
        if (result.status !== 'claimed') throw new Error(`nothing to claim: ${result.status}`)
        expect([result.segment.from, result.segment.to]).toEqual([index - 9, index])
        await insist(() => ledger.transact(sessionId, (state) => succeed(state, result.segment)))
      }
    }
  }
  await Promise.all(ids.map(live))
  expect(refused).toBeGreaterThan(30)
  expect(countApplies(calls)).toBeGreaterThan(2_000)
  expect(await insist(() => ledger.stats())).toEqual({
    dirtySessions: 0,
    uncommittedSince: undefined,
    unsettled: 0,
    parked: 0,
  })
  process.stdout.write(`injected failures: ${countApplies(calls)} batches, ${refused} calls refused and repeated\n`)
})

test.each([
  ['a count', 'stats'],
  ['the tidying after a batch', 'tidy'],
] as const)('L9: %s that fails does not make the text of a session look like none', async (_name, failing) => {
  let isFailing = false
  const { ledger } = await openWatched((call) => (isFailing && call === failing ? 'before' : undefined))
  await ledger.transact('s', (state) => recordTurn(state, turn(1)))
  // Every so many batches one is followed by tidying, right after its callers were answered.
  for (let batch = 0; batch < 20; batch += 1) {
    isFailing = true
    const count = ledger.stats().catch(() => undefined)
    const texts: unknown[] = []
    for await (const { messages } of ledger.outbox('s', 1, 1)) texts.push(messages)
    await count
    isFailing = false
    expect(texts).toEqual(['["text 1"]'])
    await ledger.transact('s', (state) => answer(state, undefined))
  }
})

test.each([
  ['on this thread', LocalHost],
  ['on a thread of its own', WorkerHost],
])('a file %s that failed when it was just opened is let go of: the next call opens it anew', async (_name, Host) => {
  let isFailing = true
  const { ledger } = watch((call) => (isFailing && call === 'numbers' ? 'before' : undefined), Host)
  await expect(ledger.open()).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  isFailing = false
  expect((await ledger.transact('s', (state) => recordTurn(state, turn(1)))).result).toBe(1)
})

test('a file whose batch failed answers nothing more: its half-written rows must not be read', async () => {
  const host = new LocalHost({ path: join(temporaryDirectory(), 'ledger.db'), allowNetworkFileSystem: false, at: 1 })
  await host.open()
  onTestFinished(() => host.abandon())
  const twice: SqlValue[] = []
  for (let copy = 0; copy < 2; copy += 1) {
    pushOutbox(twice, { id: 1, previous: 0, session: 1 }, { generation: 1, at: 1, turnId: undefined, messages: '[]' })
  }
  expect(() => host.call('apply', { ...noChanges(), appended: twice })).toThrow(/UNIQUE/)
  expect(() => host.call('outboxPage', 1, [1])).toThrow('not open')
})

test('close makes durable what was asked for before it', async () => {
  const { ledger } = await openWatched()
  const marks = [1, 2, 3].map((index) => ledger.transact('s', (state) => recordTurn(state, turn(index))))
  const closing = ledger.close()
  expect((await Promise.all(marks)).map(({ result }) => result)).toEqual([1, 2, 3])
  await closing
  await expect(ledger.transact('s', (state) => answer(state, 1))).rejects.toMatchObject({ code: 'CLOSED' })
})
