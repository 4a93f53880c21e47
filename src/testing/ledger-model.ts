import {
  accept,
  allSegments,
  type ClaimRequest,
  claimSegment,
  type Decision,
  discard,
  fail,
  type OutboxEntry,
  type Range,
  recordTurn,
  release,
  requestBoundary,
  retractTurns,
  rotate,
  type SessionState,
  settleCommitted,
  settleFailed,
  settlePending,
  succeed,
  unpark,
} from '../core/index.js'
import type { Decide } from '../ledger/ledger.js'

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const RETRY = Object.freeze({ attempts: 3, minDelayMs: 10, maxDelayMs: 1_000 })

export function claimRequest(instance: string, key: string, at: number, isReachable = true): ClaimRequest {
  return {
    instance,
    key,
    at,
    scope: 'all',
    reason: 'manual',
    attemptsAllowed: RETRY.attempts,
    order: 'available',
    adopter: undefined,
    isReachable: () => isReachable,
    isUnderWay: () => false,
    tried: new Set(),
    impatient: true,
  }
}

/** A transition drawn at random: everything the core can do to a session, in every state it can be in. */
export function drawDecision(random: () => number, at: number): Decide<unknown> {
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T
  const owner = pick('one', 'other', undefined)
  const turnId = pick(undefined, undefined, `turn-${Math.floor(random() * 20)}`)
  const messages = pick(undefined, JSON.stringify([`text 🌊 ${at}`]), JSON.stringify(['x'.repeat(9_000)]))
  const number = random()
  const key = `key-${at}`
  const failure = { at, error: 'Error', retryable: number < 0.7, retry: RETRY, chance: number }
  const kind = pick<keyof typeof transitions>(
    ...(['record', 'record', 'record', 'record', 'claim', 'claim', 'succeed', 'accept', 'fail', 'release'] as const),
    ...(['settle', 'settleFail', 'pending', 'retract', 'boundary', 'rotate', 'unpark', 'discard', 'read'] as const),
  )
  const transitions = {
    record: (state: SessionState) => recordTurn(state, { owner, at, turnId, messages }),
    claim: (state: SessionState) => claimSegment(state, claimRequest('instance', key, at)),
    succeed: (state: SessionState) => succeed(state, named(state, 'claimed')),
    accept: (state: SessionState) =>
      accept(state, { ...named(state, 'claimed'), receipt: `receipt-${at}`, askAt: at + 10, settleBy: at + 100 }),
    fail: (state: SessionState) => fail(state, { ...named(state, 'claimed'), ...failure }),
    release: (state: SessionState) => release(state, named(state, 'claimed')),
    settle: (state: SessionState) => settleCommitted(state, named(state, 'accepted')),
    settleFail: (state: SessionState) => settleFailed(state, named(state, 'accepted'), { ...failure, newKey: key }),
    pending: (state: SessionState) =>
      settlePending(state, named(state, 'accepted'), { at, askAt: at + 20, error: 'late' }),
    retract: (state: SessionState) => retractTurns(state, state.generation - Math.floor(number * 6)),
    boundary: (state: SessionState) => requestBoundary(state, 'switch'),
    rotate: (state: SessionState) => (number < 0.1 ? rotate(state, 'elsewhere') : requestBoundary(state, 'idle')),
    unpark: (state: SessionState) => unpark(state, { at, settleBy: at + 100 }),
    discard: (state: SessionState) => discard(state, number < 0.3),
    read: (state: SessionState): Decision<unknown> => ({ state, result: undefined, events: [] }),
  }
  return transitions[kind]
}

/** The name of the segment in this state; of nothing if there is none, which every transition must shrug off. */
function named(state: SessionState, wanted: string): { key: string; token: number; receipt: string } {
  const segment = state.segments.find((candidate) => candidate.state === wanted)
  if (segment === undefined || segment.state === 'open') return { key: 'none', token: -1, receipt: 'none' }
  return {
    key: segment.key,
    token: segment.state === 'claimed' ? segment.token : -1,
    receipt: segment.state === 'accepted' ? segment.receipt : 'none',
  }
}

/** What a ledger must hold after a decision, kept in the simplest way there is. */
export class LedgerModel {
  readonly states = new Map<string, SessionState>()
  readonly #texts = new Map<string, OutboxEntry[]>()

  apply(sessionId: string, before: SessionState, decision: Decision<unknown>): void {
    if (decision.state === before) return
    this.states.set(sessionId, decision.state)
    const isDropped = ({ generation }: OutboxEntry): boolean =>
      (decision.drop ?? []).some(({ from, to }: Range) => from <= generation && generation <= to)
    const texts = (this.#texts.get(sessionId) ?? []).filter((entry) => !isDropped(entry))
    if (decision.append !== undefined) texts.push(decision.append)
    this.#texts.set(sessionId, texts)
  }

  texts(sessionId: string): readonly OutboxEntry[] {
    return (this.#texts.get(sessionId) ?? []).filter(({ messages }) => messages !== undefined)
  }
}

/** A state in a form in which two equal ones look equal: no matter how turn ids are held or what is left undefined. */
export function plainState(state: SessionState): unknown {
  const ids = (state.turnIds ?? []).flatMap((run) => [...run])
  ids.sort(([, one], [, other]) => one - other)
  return JSON.parse(JSON.stringify({ ...state, turnIds: ids, all: allSegments(state) })) as unknown
}
