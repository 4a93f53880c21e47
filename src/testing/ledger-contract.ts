import assert from 'node:assert/strict'
import {
  accept,
  answer,
  claimSegment,
  discard,
  emptySession,
  fail,
  type OutboxEntry,
  recordTurn,
  retractTurns,
  type SessionState,
  succeed,
} from '../core/index.js'
import type { Ledger, SessionEntry } from '../ledger/ledger.js'
import { tallySessions } from '../ledger/tally.js'
import { claimRequest, drawDecision, LedgerModel, plainState, seededRandom } from './ledger-model.js'

export interface LedgerContract {
  /** How a test is declared: `it` of your test runner. */
  readonly it: (name: string, run: () => Promise<void>) => unknown
  /** An empty, open ledger. */
  readonly open: () => Promise<Ledger>
  /** Closes this ledger and opens its storage again, as a new process would. Needed if it persists. */
  readonly reopen?: (ledger: Ledger) => Promise<Ledger>
  /** For the random walk. @default 1 */
  readonly seed?: number
  /** Transitions of the random walk. @default 1500 */
  readonly steps?: number
}

/** What every ledger has to do. Run it over your own: it declares one test a sentence. */
export function ledgerContract(contract: LedgerContract): void {
  describeTransactions(contract)
  describeReading(contract)
  describePersistence(contract)
  describeRandomWalk(contract)
}

const AT = 1_700_000_000_000

async function mark(
  ledger: Ledger,
  sessionId: string,
  turn: Partial<Parameters<typeof recordTurn>[1]> = {},
): Promise<number> {
  const whole = { owner: 'agent', at: AT, turnId: undefined, messages: undefined, ...turn }
  return (await ledger.transact(sessionId, (state) => recordTurn(state, whole))).result
}

async function stateOf(ledger: Ledger, sessionId: string): Promise<SessionState> {
  return (await ledger.transact(sessionId, (state) => answer(state, state))).result
}

async function commitAll(ledger: Ledger, sessionId: string): Promise<void> {
  const key = `key of ${sessionId}`
  await ledger.transact(sessionId, (state) => claimSegment(state, claimRequest(ledger.instance, key, AT)))
  await ledger.transact(sessionId, (state) => succeed(state, { key, token: state.token }))
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

async function textsOf(ledger: Ledger, sessionId: string, from: number, to: number): Promise<OutboxEntry[]> {
  return collect(ledger.outbox(sessionId, from, to))
}

/** Opens a ledger for one test and closes it whatever happens. */
function withLedger(contract: LedgerContract, run: (ledger: Ledger) => Promise<void>): () => Promise<void> {
  return async () => {
    const ledger = await contract.open()
    try {
      await run(ledger)
    } finally {
      await ledger.close()
    }
  }
}

function describeTransactions(contract: LedgerContract): void {
  const test = (name: string, run: (ledger: Ledger) => Promise<void>): unknown =>
    contract.it(name, withLedger(contract, run))

  test('a session that was never seen is empty', async (ledger) => {
    assert.deepEqual(plainState(await stateOf(ledger, 's')), plainState(emptySession))
    assert.deepEqual(await collect(ledger.sessions('all')), [])
  })

  test('decisions on one session run in the order of the calls, each on what the one before decided', async (ledger) => {
    const marks = Array.from({ length: 100 }, (_, index) => mark(ledger, index % 2 === 0 ? 'even' : 'odd'))
    const expected = Array.from({ length: 100 }, (_, index) => Math.floor(index / 2) + 1)
    assert.deepEqual(await Promise.all(marks), expected)
  })

  test('a decision that throws rejects its own caller and nobody else', async (ledger) => {
    const before = mark(ledger, 's')
    const thrown = ledger.transact('s', () => {
      throw new RangeError('no')
    })
    const after = mark(ledger, 's')
    await assert.rejects(thrown, RangeError)
    assert.deepEqual(await Promise.all([before, after]), [1, 2])
  })

  test('an answer that changes nothing leaves no session behind', async (ledger) => {
    await ledger.transact('s', (state) => answer(state, 1))
    assert.deepEqual(await collect(ledger.sessions('all')), [])
  })

  test('the whole decision comes back, events included', async (ledger) => {
    const turn = { owner: 'agent', at: AT, turnId: undefined, messages: undefined }
    const { result, events } = await ledger.transact('s', (state) => recordTurn(state, turn))
    assert.equal(result, 1)
    assert.deepEqual(events, [{ type: 'turn:recorded', generation: 1, owner: 'agent' }])
  })

  test('L12: a turn id that is not committed yet is found again', async (ledger) => {
    assert.equal(await mark(ledger, 's', { turnId: 'a' }), 1)
    assert.equal(await mark(ledger, 's', { turnId: 'b' }), 2)
    assert.equal(await mark(ledger, 's', { turnId: 'a' }), 1)
    await commitAll(ledger, 's')
    assert.equal(await mark(ledger, 's', { turnId: 'a' }), 3)
  })

  test('this opener is alive, a stranger is not', (ledger) => {
    assert.equal(ledger.isAlive(ledger.instance), true)
    if (!ledger.supports.shared) assert.equal(ledger.isAlive('somebody else'), false)
    return Promise.resolve()
  })

  test('a closed ledger says so: every later call rejects with CLOSED, and closing again is harmless', async (ledger) => {
    assert.deepEqual(ledger.health(), { status: 'ok' })
    await mark(ledger, 's')
    await ledger.close()
    await ledger.close()
    await assert.rejects(mark(ledger, 's'), { code: 'CLOSED' })
    await assert.rejects(ledger.stats(), { code: 'CLOSED' })
    await assert.rejects(collect(ledger.sessions('all')), { code: 'CLOSED' })
    await assert.rejects(textsOf(ledger, 's', 1, 1), { code: 'CLOSED' })
    assert.equal(ledger.health().status, 'unhealthy')
  })
}

function describeReading(contract: LedgerContract): void {
  const test = (name: string, run: (ledger: Ledger) => Promise<void>): unknown =>
    contract.it(name, withLedger(contract, run))

  test('unfinished sessions come longest wait first; finished ones are not among them', async (ledger) => {
    for (const [sessionId, at] of [
      ['late', AT + 9],
      ['early', AT + 1],
      ['done', AT],
      ['between', AT + 5],
    ] as const) {
      await mark(ledger, sessionId, { at })
    }
    await commitAll(ledger, 'done')
    const ids = (await collect(ledger.sessions('unfinished'))).map(({ sessionId }) => sessionId)
    assert.deepEqual(ids, ['early', 'between', 'late'])
    const all = (await collect(ledger.sessions('all'))).map(({ sessionId }) => sessionId)
    assert.deepEqual(all.toSorted(), ['between', 'done', 'early', 'late'])
  })

  test('more sessions than fit on one page are all listed, once each', async (ledger) => {
    await Promise.all(Array.from({ length: 1_234 }, (_, index) => mark(ledger, `session ${index}`, { at: AT + index })))
    const ids = (await collect(ledger.sessions('unfinished'))).map(({ sessionId }) => sessionId)
    assert.deepEqual(
      ids,
      Array.from({ length: 1_234 }, (_, index) => `session ${index}`),
    )
    assert.equal(new Set((await collect(ledger.sessions('all'))).map(({ sessionId }) => sessionId)).size, 1_234)
  })

  test('L9: the text of a range comes back oldest first, as it was handed over, without turns that had none', async (ledger) => {
    const texts = ['["plain"]', undefined, '["🌊 é 漢\\u0000"]', '["' + 'long '.repeat(20_000) + '"]']
    for (const messages of texts)
      await mark(ledger, 's', { messages, turnId: messages === undefined ? 'bare' : undefined })
    await mark(ledger, 'other', { messages: '["foreign"]' })
    const expected = [
      { generation: 1, at: AT, turnId: undefined, messages: texts[0] },
      { generation: 3, at: AT, turnId: undefined, messages: texts[2] },
      { generation: 4, at: AT, turnId: undefined, messages: texts[3] },
    ]
    assert.deepEqual(await textsOf(ledger, 's', 1, 4), expected)
    assert.deepEqual(await textsOf(ledger, 's', 2, 3), expected.slice(1, 2))
    assert.deepEqual(await textsOf(ledger, 'unknown', 1, 9), [])
  })

  test('L9: text leaves the outbox with its segment, and no other text does', async (ledger) => {
    await mark(ledger, 's', { messages: '["one"]' })
    await ledger.transact('s', (state) => claimSegment(state, claimRequest(ledger.instance, 'key', AT)))
    await mark(ledger, 's', { messages: '["two"]' })
    await ledger.transact('s', (state) => succeed(state, { key: 'key', token: 1 }))
    assert.deepEqual(
      (await textsOf(ledger, 's', 1, 9)).map(({ messages }) => messages),
      ['["two"]'],
    )
  })

  test('L13: the text of retracted turns leaves the outbox at once', async (ledger) => {
    for (const messages of ['["one"]', '["two"]', '["three"]']) await mark(ledger, 's', { messages })
    await ledger.transact('s', (state) => retractTurns(state, 2))
    assert.deepEqual(
      (await textsOf(ledger, 's', 1, 9)).map(({ messages }) => messages),
      ['["one"]'],
    )
    assert.equal(await mark(ledger, 's', { messages: '["four"]' }), 4)
    assert.deepEqual(
      (await textsOf(ledger, 's', 1, 9)).map(({ generation }) => generation),
      [1, 4],
    )
  })

  test('the counts are those of the sessions it holds', async (ledger) => {
    for (const sessionId of ['open', 'accepted', 'parked', 'done']) await mark(ledger, sessionId, { at: AT + 7 })
    await commitAll(ledger, 'done')
    for (const sessionId of ['accepted', 'parked']) {
      await ledger.transact(sessionId, (state) => claimSegment(state, claimRequest(ledger.instance, 'key', AT)))
    }
    const name = { key: 'key', token: 1 }
    await ledger.transact('accepted', (state) => accept(state, { ...name, receipt: 'r', askAt: AT, settleBy: AT }))
    const retry = { attempts: 1, minDelayMs: 1, maxDelayMs: 1 }
    const failure = { ...name, at: AT, error: 'Error', retryable: false, retry, chance: 0 }
    await ledger.transact('parked', (state) => fail(state, failure))
    assert.deepEqual(await ledger.stats(), { dirtySessions: 1, uncommittedSince: AT + 7, unsettled: 1, parked: 1 })
  })
}

function describePersistence({ it, open, reopen }: LedgerContract): void {
  if (reopen === undefined) return
  const test = (name: string, run: (ledger: Ledger) => Promise<Ledger>): unknown =>
    it(name, async () => {
      const last = await run(await open())
      await last.close()
    })

  test('L8: generations and fencing tokens go on where they were, also after a discard', async (ledger) => {
    await mark(ledger, 's')
    await commitAll(ledger, 's')
    await mark(ledger, 's')
    await ledger.transact('s', (state) => discard(state, true))
    const next = await reopen(ledger)
    const state = await stateOf(next, 's')
    assert.deepEqual([state.generation, state.token], [2, 1])
    assert.equal(await mark(next, 's'), 3)
    return next
  })

  test('L12: turn ids of what is not committed survive a restart', async (ledger) => {
    await mark(ledger, 's', { turnId: 'a' })
    await mark(ledger, 's', { turnId: 'b', messages: '["text"]' })
    const next = await reopen(ledger)
    assert.equal(await mark(next, 's', { turnId: 'b' }), 2)
    assert.equal(await mark(next, 's', { turnId: 'a' }), 1)
    assert.equal(await mark(next, 's', { turnId: 'c' }), 3)
    return next
  })

  test('L13: what was retracted stays retracted, and its number is not used again', async (ledger) => {
    for (let turn = 0; turn < 3; turn += 1) await mark(ledger, 's', { messages: '["text"]' })
    const { state } = await ledger.transact('s', (found) => retractTurns(found, 3))
    const next = await reopen(ledger)
    assert.deepEqual(plainState(await stateOf(next, 's')), plainState(state))
    assert.equal(await mark(next, 's'), 4)
    assert.deepEqual((await stateOf(next, 's')).tail?.gaps, [{ from: 3, to: 3 }])
    return next
  })

  test('R1: the claim of an earlier opener is found, with its key, its token and its text', async (ledger) => {
    await mark(ledger, 's', { messages: '["text"]' })
    await ledger.transact('s', (state) => claimSegment(state, claimRequest(ledger.instance, 'key', AT)))
    const next = await reopen(ledger)
    const [entry] = await collect(next.sessions('unfinished'))
    const [segment] = (entry as SessionEntry).state.segments
    assert.ok(segment?.state === 'claimed')
    assert.deepEqual([segment.key, segment.token, segment.attempts], ['key', 1, 1])
    assert.equal(next.isAlive(segment.instance), false)
    assert.deepEqual(
      (await textsOf(next, 's', 1, 1)).map(({ messages }) => messages),
      ['["text"]'],
    )
    return next
  })
}

function describeRandomWalk({ it, open, reopen, seed = 1, steps = 1_500 }: LedgerContract): void {
  it(`a random walk through all transitions leaves exactly what was decided (seed ${seed})`, async () => {
    const random = seededRandom(seed)
    const model = new LedgerModel()
    let ledger = await open()
    const ids = ['a', 'b', '🐙', 'd/../e']
    for (let step = 0; step < steps;) {
      const batch: Promise<unknown>[] = []
      for (let left = Math.ceil(random() * 20); left > 0 && step < steps; left -= 1, step += 1) {
        const sessionId = ids[Math.floor(random() * ids.length)] as string
        const decide = drawDecision(random, AT + step)
        batch.push(
          ledger.transact(sessionId, (state) => {
            const decision = decide(state)
            // A ledger that does not persist may forget; then the model does too.
            model.apply(sessionId, state, decision)
            if (decision.forget === true && !ledger.supports.persistent) model.states.delete(sessionId)
            return decision
          }),
        )
      }
      await Promise.all(batch)
      if (reopen !== undefined && random() < 0.05) ledger = await reopen(ledger)
      if (random() < 0.2) await compare(ledger, model, ids)
    }
    await compare(ledger, model, ids)
    await ledger.close()
  })
}

async function compare(ledger: Ledger, model: LedgerModel, ids: readonly string[]): Promise<void> {
  const listed = new Map((await collect(ledger.sessions('all'))).map(({ sessionId, state }) => [sessionId, state]))
  assert.deepEqual([...listed.keys()].toSorted(), [...model.states.keys()].toSorted())
  for (const sessionId of ids) {
    const expected = model.states.get(sessionId) ?? emptySession
    assert.deepEqual(plainState(await stateOf(ledger, sessionId)), plainState(expected))
    assert.deepEqual(plainState(listed.get(sessionId) ?? emptySession), plainState(expected))
    assert.deepEqual(await textsOf(ledger, sessionId, 1, Infinity), model.texts(sessionId))
  }
  assert.deepEqual(await ledger.stats(), tallySessions(model.states.values()))
}
