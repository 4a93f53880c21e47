import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  accept,
  allSegments,
  claimSegment,
  type Decision,
  discard,
  emptySession,
  fail,
  finishBoundary,
  hasUncommittedWork,
  recordTurn,
  release,
  requestBoundary,
  retractTurns,
  type SessionState,
  settleCommitted,
  settleFailed,
  succeed,
  unpark,
  watermark,
} from '../../src/core/index.js'
import { type Offer, SessionModel } from './model.js'
import { seed } from '../support/seed.js'

const OWNERS = ['ann', 'bob', undefined] as const
const ATTEMPTS = 3
const RETRY = { attempts: ATTEMPTS, minDelayMs: 1, maxDelayMs: 1 }

/** The implementation under test: a state that only transitions may replace. */
interface Real {
  state: SessionState
  /** Claims that were made, newest last: an old one may still report. */
  claims: { key: string; token: number; offer: Offer }[]
  receipts: { key: string; receipt: string; offer: Offer }[]
  keys: number
}

type Command = fc.Command<SessionModel, Real>

/** Every generation is in exactly one place, and it is the place the model knows. */
function agree(model: SessionModel, real: Real): void {
  const { state } = real
  const places = model.generations.map(() => [] as string[])
  for (const segment of allSegments(state)) {
    for (let generation = segment.from; generation <= segment.to; generation += 1) {
      if (segment.gaps?.some(({ from, to }) => from <= generation && generation <= to) === true) continue
      places[generation - 1]?.push(segment.state === 'open' || segment.state === 'waiting' ? 'dirty' : segment.state)
    }
  }
  expect(state.generation).toBe(model.generations.length)
  expect(places.map((found) => (found.length === 0 ? 'committed' : found.join('+')))).toEqual(
    model.generations.map(({ phase }) => phase),
  )
  expect(watermark(state)).toBe(model.watermark())
  expect(hasUncommittedWork(state)).toBe(
    model.generations.some(({ phase }) => phase !== 'committed' && phase !== 'accepted'),
  )
  expect(state.token).toBe(model.token)
  for (const segment of allSegments(state)) {
    const first = model.at(segment.from)
    expect(segment.owner).toBe(first.offer?.owner ?? first.owner)
    if (segment.state !== 'open') expect(segment.attempts).toBe(first.offer?.attempts)
  }
  // Finishing a boundary is already done by whatever could have finished it.
  expect(finishBoundary(state)).toBe(state)
}

function step<R>(real: Real, decision: Decision<R>): R {
  expect(decision.state.generation).toBeGreaterThanOrEqual(real.state.generation)
  expect(decision.state.token).toBeGreaterThanOrEqual(real.state.token)
  for (const before of allSegments(real.state)) {
    // An owner once set never changes, a sealed range never moves, a key changes only by a failed settlement.
    const after = allSegments(decision.state).find(({ from }) => from === before.from)
    if (after === undefined) continue
    if (before.owner !== undefined) expect(after.owner).toBe(before.owner)
    if (before.state !== 'open') expect(after.to).toBe(before.to)
  }
  real.state = decision.state
  return decision.result
}

abstract class Always implements Command {
  check(): boolean {
    return true
  }
  abstract run(model: SessionModel, real: Real): void
}

class Record extends Always {
  constructor(readonly owner: string | undefined) {
    super()
  }
  override run(model: SessionModel, real: Real): void {
    const generation = step(
      real,
      recordTurn(real.state, { owner: this.owner, at: 0, turnId: undefined, messages: undefined }),
    )
    expect(generation).toBe(model.record(this.owner))
    agree(model, real)
  }
  override toString = (): string => `record(${this.owner ?? 'nobody'})`
}

class Claim extends Always {
  constructor(
    readonly reachable: readonly string[],
    readonly died: boolean,
  ) {
    super()
  }
  override run(model: SessionModel, real: Real): void {
    const reachable = new Set(this.reachable)
    if (this.died) {
      // A claim of a dead process is free; at its last allowed attempt it is parked instead.
      for (const run of model.runs()) {
        if (model.phaseOf(run) === 'claimed')
          model.set(run.members, (run.offer?.attempts ?? 0) >= ATTEMPTS ? 'parked' : 'dirty')
      }
    }
    const expected = model.nextToClaim(reachable)
    const key = `key-${(real.keys += 1)}`
    const result = step(
      real,
      claimSegment(real.state, {
        instance: 'me',
        key,
        at: 0,
        scope: 'all',
        reason: 'manual',
        attemptsAllowed: ATTEMPTS,
        order: 'available',
        adopter: undefined,
        isReachable: (owner) => owner !== undefined && reachable.has(owner),
        isUnderWay: () => !this.died,
        tried: new Set(),
        impatient: true,
      }),
    )
    if (expected === 'busy') expect(result.status).toBe('busy')
    else if (expected === undefined) expect(['clean', 'parked', 'unowned']).toContain(result.status)
    else {
      expect(result.status).toBe('claimed')
      if (result.status !== 'claimed') return
      const offer = expected.offer ?? { key, attempts: 0, owner: expected.owner }
      for (const generation of expected.members) model.at(generation).offer = offer
      offer.attempts += 1
      model.token += 1
      model.set(expected.members, 'claimed')
      expect([result.segment.from, result.segment.to]).toEqual([expected.members[0], expected.members.at(-1)])
      expect(result.segment.key).toBe(offer.key)
      expect(result.segment.token).toBe(model.token)
      real.claims.push({ key: result.segment.key, token: result.segment.token, offer })
    }
    agree(model, real)
  }
  override toString = (): string => `claim(${this.reachable.join()}${this.died ? ', after a crash' : ''})`
}

/** An answer to one of the last claims: the current one, or one that was abandoned long ago. */
class Answer implements Command {
  constructor(
    readonly kind: 'succeed' | 'fail' | 'fail for good' | 'accept' | 'release',
    readonly age: number,
  ) {}
  check(): boolean {
    return true
  }
  run(model: SessionModel, real: Real): void {
    const claim = real.claims.at(-1 - this.age)
    if (claim === undefined) return
    const { offer, key, token } = claim
    const members = model.membersOf(offer)
    const isCurrent =
      token === model.token && members.length > 0 && model.at(members[0]!).phase === 'claimed' && offer.key === key
    switch (this.kind) {
      case 'succeed': {
        const counted = step(real, succeed(real.state, claim)).counted
        expect(counted).toBe(members.length > 0 && offer.key === key)
        if (counted) model.set(members, 'committed')
        break
      }
      case 'fail':
      case 'fail for good': {
        const retryable = this.kind === 'fail'
        const result = step(
          real,
          fail(real.state, { key, token, at: 0, error: 'x', retryable, retry: RETRY, chance: 0 }),
        )
        const parks = !retryable || offer.attempts >= ATTEMPTS
        expect(result).toBe(isCurrent ? (parks ? 'parked' : 'waiting') : 'ignored')
        if (isCurrent) model.set(members, parks ? 'parked' : 'dirty')
        break
      }
      case 'accept': {
        const receipt = `receipt-${token}`
        expect(step(real, accept(real.state, { key, token, receipt, askAt: 0, settleBy: 1 }))).toBe(isCurrent)
        if (!isCurrent) break
        model.set(members, 'accepted')
        real.receipts.push({ key, receipt, offer })
        break
      }
      case 'release':
        expect(step(real, release(real.state, claim))).toBe(isCurrent)
        if (!isCurrent) break
        model.set(members, 'dirty')
        offer.attempts -= 1
        break
      default:
        this.kind satisfies never
    }
    agree(model, real)
  }
  toString = (): string => `${this.kind}(${this.age === 0 ? 'newest claim' : `claim ${this.age} before`})`
}

class Settle implements Command {
  constructor(
    readonly committed: boolean,
    readonly age: number,
  ) {}
  check(): boolean {
    return true
  }
  run(model: SessionModel, real: Real): void {
    const name = real.receipts.at(-1 - this.age)
    if (name === undefined) return
    const { offer } = name
    const members = model.membersOf(offer)
    const accepted = allSegments(real.state).some(
      (segment) => segment.state === 'accepted' && segment.receipt === name.receipt,
    )
    if (this.committed) {
      expect(step(real, settleCommitted(real.state, name))).toBe(accepted)
      if (accepted) model.set(members, 'committed')
    } else {
      const newKey = `key-${(real.keys += 1)}`
      const failure = { at: 0, error: 'x', retryable: true, retry: RETRY, chance: 0, newKey }
      const result = step(real, settleFailed(real.state, name, failure))
      const parks = offer.attempts >= ATTEMPTS
      expect(result).toBe(accepted ? (parks ? 'parked' : 'waiting') : 'ignored')
      if (accepted) {
        model.set(members, parks ? 'parked' : 'dirty')
        offer.key = newKey
      }
    }
    agree(model, real)
  }
  toString = (): string => `settle(${this.committed ? 'committed' : 'failed'}, ${this.age})`
}

class Retract implements Command {
  constructor(readonly from: number) {}
  check(): boolean {
    return true
  }
  run(model: SessionModel, real: Real): void {
    const offered = model.generations.filter((each, index) => index + 1 >= this.from && each.offer !== undefined).length
    const result = step(real, retractTurns(real.state, this.from))
    expect(result.offered).toBeGreaterThanOrEqual(offered)
    let retracted = 0
    for (const [index, each] of model.generations.entries()) {
      if (index + 1 < this.from || each.offer !== undefined || each.phase !== 'dirty') continue
      each.phase = 'committed'
      each.retracted = true
      retracted += 1
    }
    expect(result.retracted).toBe(retracted)
    agree(model, real)
  }
  toString = (): string => `retract(${this.from})`
}

class Unpark extends Always {
  override run(model: SessionModel, real: Real): void {
    const parked = model.runs().filter((run) => model.phaseOf(run) === 'parked')
    expect(step(real, unpark(real.state, { at: 0, settleBy: 1 }))).toBe(parked.length)
    for (const run of parked) {
      model.set(run.members, 'dirty')
      if (run.offer !== undefined) run.offer.attempts = 0
    }
    agree(model, real)
  }
  override toString = (): string => 'unpark'
}

class Discard extends Always {
  constructor(readonly force: boolean) {
    super()
  }
  override run(model: SessionModel, real: Real): void {
    const isFinished = model.generations.every(({ phase }) => phase === 'committed')
    expect(step(real, discard(real.state, this.force))).toBe(isFinished || this.force)
    if (isFinished || this.force) for (const each of model.generations) each.phase = 'committed'
    agree(model, real)
  }
  override toString = (): string => `discard(${this.force ? 'force' : ''})`
}

class Boundary extends Always {
  override run(model: SessionModel, real: Real): void {
    step(real, requestBoundary(real.state, 'switch'))
    agree(model, real)
  }
  override toString = (): string => 'boundary'
}

const owner = fc.constantFrom(...OWNERS)
const reachable = fc.subarray(['ann', 'bob'], { minLength: 0 })
const commands = [
  owner.map((each) => new Record(each)),
  owner.map((each) => new Record(each)),
  fc.tuple(reachable, fc.boolean()).map(([who, died]) => new Claim(who, died)),
  fc.constant(new Claim(['ann', 'bob'], false)),
  fc
    .tuple(fc.constantFrom('succeed', 'fail', 'fail for good', 'accept', 'release'), fc.nat({ max: 2 }))
    .map(([kind, age]) => new Answer(kind, age)),
  fc.constant(new Answer('succeed', 0)),
  fc.tuple(fc.boolean(), fc.nat({ max: 1 })).map(([committed, age]) => new Settle(committed, age)),
  fc.integer({ min: -1, max: 12 }).map((from) => new Retract(from)),
  fc.constant(new Unpark()),
  fc.constant(new Boundary()),
  fc.boolean().map((force) => new Discard(force)),
]

test('C4, L5, L13: the state machine agrees with an independent model, generation by generation', () => {
  const numRuns = Number(process.env['TIDEMARK_RUNS'] ?? 3_000)
  console.log(`model: ${numRuns} runs, seed ${seed} (TIDEMARK_SEED, TIDEMARK_RUNS)`)
  fc.assert(
    fc.property(fc.commands(commands, { maxCommands: 60, size: '+1' }), (sequence) => {
      fc.modelRun(
        () => ({ model: new SessionModel(), real: { state: emptySession, claims: [], receipts: [], keys: 0 } }),
        sequence,
      )
    }),
    { seed, numRuns },
  )
})
