import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { type Decision, emptySession, type OutboxEntry, recordTurn, type SessionState } from '../../src/core/index.js'
import type { Decide } from '../../src/ledger/ledger.js'
import type { Changes } from '../../src/ledger/sqlite/changes.js'
import { LocalHost, type StoreHost } from '../../src/ledger/sqlite/host.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'
import { WriteBehind } from '../../src/ledger/sqlite/write-behind.js'
import { tallySessions } from '../../src/ledger/tally.js'
import { drawDecision, LedgerModel, plainState, seededRandom } from '../../src/testing/ledger-model.js'
import { DelayedHost } from '../support/delayed-host.js'
import { WatchedHost } from '../support/watched-host.js'

/** TIDEMARK_TEST_ALL=1 looks at many more. */
const NUM_RUNS = process.env['TIDEMARK_TEST_ALL'] === '1' ? 1_500 : 60

/**
 * Histories of a ledger: bursts of calls that run into each other, faults at any call to the file, processes that end
 * in the middle, closes in the middle. A model keeps what reached the file. Whatever is read must be what is there,
 * whatever was acknowledged must be there, and every promise settles.
 */

type Op =
  | { readonly kind: 'mark'; readonly session: string; readonly owner: string; readonly hasText: boolean }
  | { readonly kind: 'many'; readonly session: string; readonly count: number }
  | { readonly kind: 'any'; readonly session: string; readonly seed: number }
  | { readonly kind: 'outbox'; readonly session: string }
  | { readonly kind: 'sessions'; readonly which: 'unfinished' | 'all' }
  | { readonly kind: 'stats' | 'pause' }

interface Step {
  readonly ops: readonly Op[]
  /** After so many calls to the file one fails; then so many later the next one. */
  readonly faults: readonly { readonly after: number; readonly how: 'before' | 'after' }[]
  /** How it ends: the process goes on, is killed, or closes the file; after the calls or in the middle of them. */
  readonly end: 'goOn' | 'kill' | 'killWithin' | 'close' | 'closeWithin'
}

const SESSIONS = ['a', 'b', '🐙'] as const
const session = fc.constantFrom(...SESSIONS)
const op: fc.Arbitrary<Op> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('mark' as const),
      session,
      owner: fc.constantFrom('one', 'one', 'one', 'one', 'other'),
      hasText: fc.integer({ min: 0, max: 9 }).map((number) => number > 0),
    }),
  },
  {
    weight: 1,
    // So many that they are written several at once; and so many that they are removed little by little.
    arbitrary: fc.record({
      kind: fc.constant('many' as const),
      session,
      count: fc.constantFrom(20, 40, 40, 40, 1_050),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('any' as const), session, seed: fc.nat(1_000_000) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('outbox' as const), session }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('sessions' as const),
      which: fc.constantFrom('unfinished' as const, 'all' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stats' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('pause' as const) }) },
)
const step: fc.Arbitrary<Step> = fc.record({
  ops: fc.array(op, { maxLength: 14 }),
  faults: fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.record({ after: fc.nat(6), how: fc.constantFrom('before' as const, 'after' as const) }), {
        minLength: 1,
        maxLength: 2,
      }),
    },
  ),
  end: fc.constantFrom('goOn', 'goOn', 'goOn', 'kill', 'killWithin', 'close', 'closeWithin'),
})

/** A decision that was made; it counts once its batch is in the file. */
interface Made {
  readonly sessionId: string
  readonly before: SessionState
  readonly decision: Decision<unknown>
}

class World {
  readonly model = new LedgerModel()
  readonly #path: string
  readonly #isDelayed: boolean
  /** Made in the batch that is being decided. */
  readonly #made = new Set<Made>()
  readonly #sent = new WeakMap<Changes, readonly Made[]>()
  readonly #durable = new Set<Made>()
  readonly #texts = new Map<string, string | undefined>()
  #faults: { after: number; how: 'before' | 'after' }[] = []
  #ledger: SqliteLedger
  #host: StoreHost | undefined
  #isDead = { value: false }
  #at = 1_000

  constructor(path: string, isDelayed: boolean) {
    this.#path = path
    this.#isDelayed = isDelayed
    this.#ledger = this.#start()
  }

  #start(): SqliteLedger {
    const path = this.#path
    const isDead = { value: false }
    this.#isDead = isDead
    const createHost = (at: number): StoreHost => {
      if (isDead.value) throw new Error('this process is dead')
      const local = new LocalHost({ path, allowNetworkFileSystem: false, at })
      const watched = new WatchedHost(
        local,
        [],
        () => this.#takeFault(),
        (changes) => this.#take(changes),
      )
      const host: StoreHost = this.#isDelayed ? new DelayedHost(watched) : watched
      this.#host = host
      return {
        open: () => host.open(),
        abandon: () => host.abandon(),
        close: () => host.close(),
        call: (name, ...args) => {
          if (name === 'apply') {
            this.#sent.set(args[0] as Changes, [...this.#made])
            this.#made.clear()
          }
          return host.call(name, ...args)
        },
      }
    }
    return new SqliteLedger({ path }, createHost, new WriteBehind({ rows: 4, noteEvery: 3 }))
  }

  #takeFault(): 'before' | 'after' | undefined {
    const [next] = this.#faults
    if (next === undefined) return undefined
    if (next.after > 0) next.after -= 1
    else this.#faults.shift()
    return next.after === 0 && this.#faults[0] !== next ? next.how : undefined
  }

  #take(changes: Changes): void {
    for (const made of this.#sent.get(changes) ?? []) {
      this.model.apply(made.sessionId, made.before, made.decision)
      this.#durable.add(made)
    }
  }

  #stateOf(sessionId: string): SessionState {
    const made = [...this.#made].findLast((one) => one.sessionId === sessionId)
    return made?.decision.state ?? this.model.states.get(sessionId) ?? emptySession
  }

  async #transact(sessionId: string, decide: Decide<unknown>): Promise<void> {
    let made: Made | undefined
    const isDead = this.#isDead
    try {
      await this.#ledger.transact(sessionId, (state) => {
        expect(plainState(state)).toEqual(plainState(this.#stateOf(sessionId)))
        const decision = decide(state)
        if (decision.state !== state) {
          made = { sessionId, before: state, decision }
          this.#made.add(made)
          const { append } = decision
          if (append !== undefined) this.#texts.set(`${sessionId} ${append.generation} ${append.at}`, append.messages)
        }
        return decision
      })
    } catch (error) {
      if (made !== undefined) this.#made.delete(made)
      this.#allow(error, isDead.value)
      return
    }
    if (made !== undefined) expect(this.#durable.has(made), 'acknowledged, but not in the file').toBe(true)
  }

  #allow(error: unknown, isDead: boolean): void {
    const { code } = error as { code?: string }
    if (isDead || code === 'CLOSED' || code === 'LEDGER_FAILED') return
    throw error
  }

  async #outbox(sessionId: string): Promise<void> {
    const isDead = this.#isDead
    const before = this.model.texts(sessionId)
    const found: OutboxEntry[] = []
    try {
      for await (const entry of this.#ledger.outbox(sessionId, 1, Infinity)) found.push(entry)
    } catch (error) {
      this.#allow(error, isDead.value)
      return
    }
    const numbers = found.map(({ generation }) => generation)
    expect(numbers).toEqual(numbers.toSorted((one, other) => one - other))
    expect(new Set(numbers).size).toBe(numbers.length)
    for (const { generation, at, messages } of found) {
      expect(this.#texts.get(`${sessionId} ${generation} ${at}`)).toBe(messages)
    }
    const after = new Set(this.model.texts(sessionId).map(({ generation }) => generation))
    const stayed = before.map(({ generation }) => generation).filter((generation) => after.has(generation))
    expect(numbers).toEqual(expect.arrayContaining(stayed))
  }

  async #ask(read: () => Promise<unknown>): Promise<void> {
    const isDead = this.#isDead
    await read().catch((error: unknown) => this.#allow(error, isDead.value))
  }

  async #list(which: 'unfinished' | 'all'): Promise<Map<string, SessionState>> {
    const listed = new Map<string, SessionState>()
    for await (const { sessionId, state } of this.#ledger.sessions(which)) listed.set(sessionId, state)
    return listed
  }

  async #markMany(session: string, count: number): Promise<void> {
    const mark = { kind: 'mark', session, owner: 'one', hasText: true } as const
    await Promise.all(Array.from({ length: count }, () => this.#perform(mark)))
  }

  #perform(op: Op): Promise<void> {
    const at = (this.#at += 1)
    switch (op.kind) {
      case 'mark': {
        const messages = op.hasText ? `["text ${at}"]` : undefined
        return this.#transact(op.session, (state) =>
          recordTurn(state, { owner: op.owner, at, turnId: undefined, messages }),
        )
      }
      case 'many':
        return this.#markMany(op.session, op.count)
      case 'any':
        return this.#transact(op.session, drawDecision(seededRandom(op.seed), at))
      case 'outbox':
        return this.#outbox(op.session)
      case 'sessions':
        return this.#ask(() => this.#list(op.which))
      case 'stats':
        return this.#ask(() => this.#ledger.stats())
      case 'pause':
        return Promise.resolve()
      default:
        return op satisfies never
    }
  }

  async run({ ops, faults, end }: Step): Promise<void> {
    this.#faults = faults.map((fault) => ({ ...fault }))
    const running: Promise<void>[] = []
    for (const op of ops) {
      if (op.kind === 'pause') await new Promise((resolve) => setImmediate(resolve))
      else running.push(this.#perform(op))
    }
    if (end === 'killWithin') await this.#kill()
    if (end === 'closeWithin') await this.#ledger.close()
    await Promise.all(running)
    // Once more: a file that was being opened was not there to be let go of.
    if (end === 'kill' || end === 'killWithin') await this.#kill()
    if (end === 'close') await this.#ledger.close()
    this.#faults = []
    this.#made.clear()
    if (end !== 'goOn') this.#ledger = this.#start()
    await this.#compare()
  }

  async #kill(): Promise<void> {
    this.#isDead.value = true
    await this.#host?.abandon()
  }

  async #compare(): Promise<void> {
    for (const sessionId of SESSIONS) {
      const expected = plainState(this.model.states.get(sessionId) ?? emptySession)
      const { state } = await this.#ledger.transact(sessionId, (found) => ({
        state: found,
        result: undefined,
        events: [],
      }))
      expect(plainState(state)).toEqual(expected)
      const texts: OutboxEntry[] = []
      for await (const entry of this.#ledger.outbox(sessionId, 1, Infinity)) texts.push(entry)
      expect(texts).toEqual(this.model.texts(sessionId))
    }
    const listed = await this.#list('all')
    expect([...listed.keys()].toSorted()).toEqual([...this.model.states.keys()].toSorted())
    for (const [sessionId, state] of listed) {
      expect(plainState(state)).toEqual(plainState(this.model.states.get(sessionId) ?? emptySession))
    }
    expect(await this.#ledger.stats()).toEqual(tallySessions(this.model.states.values()))
    expect(this.#ledger.health()).toEqual({ status: 'ok' })
  }

  async close(): Promise<void> {
    await this.#ledger.close()
  }
}

test.each([
  ['on this thread', false],
  ['whose answers come later', true],
])(
  'L10: whatever happens to a file %s, and when: what was acknowledged is there, and nothing else is read',
  async (_name, isDelayed) => {
    const directory = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'tidemark-histories-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    let histories = 0
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const world = new World(join(directory, `${(histories += 1)}.db`), isDelayed)
        for (const one of steps) await world.run(one)
        await world.close()
      }),
      { numRuns: NUM_RUNS },
    )
  },
  1_800_000,
)
