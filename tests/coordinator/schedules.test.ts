import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type MemoryAgent, type MemoryCommit, MemoryLifecycle } from '../../src/index.js'
import { faultyLedger, type ManualClock, manualClock } from '../../src/testing/index.js'
import { freshLedger, ledgerKind } from '../support/ledgers.js'
import { seed } from '../support/seed.js'

const SESSIONS = ['s1', 's2'] as const
const DEADLINE_MS = 10_000

type Behaviour = 'ok' | 'fail' | 'throw' | 'accept' | 'nonsense' | 'hang' | 'late'
type Operation =
  | { readonly kind: 'mark'; readonly session: string; readonly owner: string }
  | {
      readonly kind:
        'commit' | 'flush' | 'switch' | 'evict' | 'register' | 'unregister' | 'hold' | 'retry' | 'commit, impatiently'
      readonly session: string
    }
  | { readonly kind: 'drain' }
  | { readonly kind: 'fault'; readonly how: 'failNext' | 'loseNext'; readonly times: number }
  | { readonly kind: 'advance'; readonly ms: number }

const session = fc.constantFrom(...SESSIONS)
const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('mark' as const), session, owner: fc.constantFrom('ann', 'bob') }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        'commit',
        'flush',
        'switch',
        'evict',
        'register',
        'unregister',
        'hold',
        'retry',
        'commit, impatiently',
      ),
      session,
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'drain' as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('fault' as const),
      how: fc.constantFrom('failNext', 'loseNext'),
      times: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.constantFrom(1_000, 30_000, 70_000) }),
  },
)
const behaviours = fc.array(
  fc.constantFrom<Behaviour>('ok', 'ok', 'fail', 'throw', 'accept', 'nonsense', 'hang', 'late'),
  {
    maxLength: 8,
  },
)

/** Watches from the provider's side: who commits what, how often, and what was acknowledged. */
class World {
  readonly clock: ManualClock = manualClock()
  readonly owners = new Map<string, string>()
  readonly acknowledged = new Set<string>()
  readonly violations: string[] = []
  readonly script: Behaviour[]
  readonly #underWay = new Map<string, Set<MemoryCommit>>()
  readonly #keys = new Map<string, string>()
  readonly #accepted = new Map<string, MemoryCommit>()
  readonly #scheduler: fc.Scheduler
  isHealthy = false

  constructor(scheduler: fc.Scheduler, script: readonly Behaviour[]) {
    this.#scheduler = scheduler
    this.script = [...script]
  }

  agent(agentId: string): MemoryAgent {
    return {
      agentId,
      provider: agentId,
      commitMemorySession: (commit) => this.#commit(agentId, commit),
      settleMemoryCommit: (receipt) => {
        const commit = this.#accepted.get(receipt)
        if (commit !== undefined) this.#acknowledge(commit)
      },
    }
  }

  #commit(agentId: string, commit: MemoryCommit): ReturnType<MemoryAgent['commitMemorySession']> {
    const { sessionId, from, to, idempotencyKey } = commit
    const range = `${sessionId}:${from}-${to}`
    for (let generation = from; generation <= to; generation += 1) {
      const owner = this.owners.get(`${sessionId}:${generation}`)
      if (owner !== agentId)
        this.violations.push(`${agentId} got ${sessionId}:${generation}, which is ${owner ?? 'nobody'}'s`)
    }
    const known = this.#keys.get(range)
    if (known !== undefined && known !== idempotencyKey) this.violations.push(`${range} came under two keys`)
    this.#keys.set(range, idempotencyKey)
    const underWay = this.#underWay.get(sessionId) ?? new Set()
    this.#underWay.set(sessionId, underWay)
    // A call whose signal was aborted may have been abandoned: that one may overlap.
    if ([...underWay].some(({ signal }) => !signal.aborted)) this.violations.push(`two commits of ${sessionId} at once`)
    underWay.add(commit)
    const behaviour: Behaviour = this.isHealthy ? 'ok' : (this.script.shift() ?? 'ok')
    if (behaviour === 'throw') {
      underWay.delete(commit)
      throw new Error('thrown at once')
    }
    return this.#answer(behaviour, commit).finally(() => underWay.delete(commit)) as Promise<void>
  }

  async #answer(behaviour: Behaviour, commit: MemoryCommit): Promise<unknown> {
    if (behaviour === 'hang') return new Promise(() => undefined)
    // Late: it answers only after it was abandoned.
    if (behaviour === 'late') await new Promise<void>((resolve) => this.clock.setTimer(resolve, 66_000))
    await this.#scheduler.schedule(Promise.resolve(), `${behaviour} ${commit.sessionId}:${commit.from}-${commit.to}`)
    switch (behaviour) {
      case 'fail':
        throw new Error('rejected')
      case 'nonsense':
        return 'nonsense'
      case 'accept': {
        const receipt = `receipt of ${commit.idempotencyKey}`
        this.#accepted.set(receipt, commit)
        return { status: 'accepted', receipt }
      }
      case 'ok':
      case 'late':
        this.#acknowledge(commit)
        return undefined
      case 'throw':
        throw new Error('not reached')
      default:
        return behaviour satisfies never
    }
  }

  #acknowledge({ sessionId, from, to }: MemoryCommit): void {
    for (let generation = from; generation <= to; generation += 1) this.acknowledged.add(`${sessionId}:${generation}`)
  }
}

/** The ledger failed, as it was told to: this caller is told, and does not ask again. */
function ignoreFailure(error: unknown): undefined {
  expect(error).toMatchObject({ code: 'LEDGER_FAILED' })
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

async function explore(
  scheduler: fc.Scheduler,
  operations: readonly Operation[],
  script: readonly Behaviour[],
): Promise<void> {
  const world = new World(scheduler, script)
  const { clock } = world
  const ledger = faultyLedger(freshLedger())
  const lifecycle = await MemoryLifecycle.open({
    clock,
    ledger,
    random: () => 0.5,
    retry: { attempts: 3 },
  })
  const agents = new Map(['ann', 'bob'].map((agentId) => [agentId, world.agent(agentId)]))
  // The host asks again until it has an answer; the turn id makes that safe.
  const markUntilRecorded = async (sessionId: string, agent: MemoryAgent, turnId: string): Promise<number> => {
    for (;;) {
      const generation = await lifecycle.markTurnCompleted(sessionId, { agent, turnId }).catch(ignoreFailure)
      if (generation !== undefined) return generation
    }
  }
  const drains: { returned: boolean; readonly by: number }[] = []
  const run = async (each: Operation): Promise<void> => {
    switch (each.kind) {
      case 'mark': {
        const agent = agents.get(each.owner)!
        // The owner is known before the mark resolves: a boundary may be faster than we are.
        const generation = (generations.get(each.session) ?? 0) + 1
        generations.set(each.session, generation)
        world.owners.set(`${each.session}:${generation}`, each.owner)
        expect(await markUntilRecorded(each.session, agent, `turn ${generation}`)).toBe(generation)
        return
      }
      case 'commit':
        return void lifecycle.commit(each.session).catch(ignoreFailure)
      case 'commit, impatiently': {
        const impatience = new AbortController()
        void lifecycle.commit(each.session, { signal: impatience.signal, wait: true }).catch(ignoreFailure)
        void Promise.resolve().then(() => impatience.abort())
        return
      }
      case 'unregister':
        lifecycle.unregisterAgent(each.session)
        return
      case 'retry':
        return void lifecycle.retryParked(each.session).catch(ignoreFailure)
      case 'hold': {
        clock.setTimer(lifecycle.hold(each.session), 2_000)
        return
      }
      case 'fault':
        ledger[each.how] = each.times
        return
      case 'flush':
        return void lifecycle.flush(each.session).catch(ignoreFailure)
      case 'switch':
        lifecycle.switchSession(each.session, 'elsewhere')
        return
      case 'evict':
        return void lifecycle.evict(each.session).catch(ignoreFailure)
      case 'register':
        lifecycle.registerAgent(each.session, agents.get('bob')!)
        return
      case 'drain': {
        const drain = { returned: false, by: clock.now() + DEADLINE_MS }
        drains.push(drain)
        void lifecycle.drain({ deadlineMs: DEADLINE_MS }).then(() => (drain.returned = true))
        return
      }
      case 'advance':
        return clock.advance(each.ms)
      default:
        each satisfies never
    }
  }
  const generations = new Map<string, number>()
  const sequence = scheduler.scheduleSequence(
    operations.map((each) => ({ builder: () => run(each), label: JSON.stringify(each) })),
  )
  const progress = { isOver: false }
  void sequence.task.then(() => (progress.isOver = true))
  while (!progress.isOver || scheduler.count() > 0) {
    if (scheduler.count() > 0) await scheduler.waitNext(1)
    await turn()
    for (const drain of drains)
      if (clock.now() > drain.by) expect(drain.returned, 'a drain returns by its deadline').toBe(true)
    const states =
      ledger.failNext + ledger.loseNext > 0
        ? []
        : await Promise.all(SESSIONS.map((sessionId) => lifecycle.inspect(sessionId)))
    for (const state of states) {
      // The watermark never runs ahead of what a provider acknowledged.
      for (let generation = 1; generation <= (state?.watermark ?? 0); generation += 1) {
        expect(world.acknowledged).toContain(`${state!.sessionId}:${generation}`)
      }
    }
  }

  // The providers recover; everything recorded gets through, whatever was going on.
  world.isHealthy = true
  ledger.failNext = 0
  ledger.loseNext = 0
  const unhurried = async (work: Promise<unknown>): Promise<void> => {
    const end = { isDone: false }
    void work.finally(() => (end.isDone = true))
    for (let step = 0; step < 400 && !end.isDone; step += 1) {
      while (scheduler.count() > 0) await scheduler.waitNext(1)
      await clock.advance(1_000)
    }
    expect(end.isDone, 'the recovery ends').toBe(true)
  }
  await unhurried(new Promise<void>((resolve) => clock.setTimer(resolve, 200_000)))
  for (const sessionId of SESSIONS) for (const agent of agents.values()) lifecycle.registerAgent(sessionId, agent)
  // Twice: a claim that was written although the ledger said no may have been the last allowed attempt.
  for (let round = 0; round < 2; round += 1) {
    await lifecycle.retryParked()
    await unhurried(lifecycle.drain({ deadlineMs: 60_000 }))
  }
  await unhurried(new Promise<void>((resolve) => clock.setTimer(resolve, 60_000)))
  expect(world.violations).toEqual([])
  for (const [sessionId, generation] of generations) {
    expect(await lifecycle.inspect(sessionId)).toMatchObject({
      generation,
      watermark: generation,
      segments: [],
      inFlight: false,
    })
    for (let each = 1; each <= generation; each += 1) expect(world.acknowledged).toContain(`${sessionId}:${each}`)
  }
  await lifecycle.close()
}

test(
  'C4, C7, C13, C14, B3, B4, D1, D3: every interleaving keeps every turn, with its owner, one commit at a time',
  { timeout: 240_000 },
  async () => {
    const numRuns = Number(process.env['TIDEMARK_SCHEDULES'] ?? (ledgerKind === 'memory' ? 2_000 : 200))
    console.log(`schedules: ${numRuns} over the ${ledgerKind} ledger, seed ${seed} (TIDEMARK_SEED, TIDEMARK_SCHEDULES)`)
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(operation, { minLength: 3, maxLength: 14 }), behaviours, explore),
      { seed, numRuns, interruptAfterTimeLimit: 220_000, markInterruptAsFailure: true },
    )
  },
)
