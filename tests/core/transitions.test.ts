import { describe, expect, test } from 'vitest'
import {
  addTurnId,
  applyBoundaries,
  type ClaimRequest,
  claimSegment,
  dropTurnIds,
  emptySession,
  findTurnId,
  nextWake,
  recordTurn,
  requestBoundary,
  retractTurns,
  retryDelay,
  type SessionState,
  settlePending,
  type TurnIds,
} from '../../src/core/index.js'

const at = 1_000

function record(state: SessionState, owner: string | undefined, time = at): SessionState {
  return recordTurn(state, { owner, at: time, turnId: undefined, messages: undefined }).state
}

function claim(state: SessionState, change: Partial<ClaimRequest> = {}): ReturnType<typeof claimSegment> {
  return claimSegment(state, {
    instance: 'me',
    key: 'key',
    at,
    scope: 'all',
    reason: 'manual',
    attemptsAllowed: 8,
    order: 'available',
    adopter: undefined,
    isReachable: (owner) => owner !== undefined,
    isUnderWay: () => true,
    tried: new Set(),
    impatient: true,
    ...change,
  })
}

describe('claims', () => {
  test('C7: a claim on a later segment keeps an earlier one, reachable again, from being claimed beside it', () => {
    const both = record(record(emptySession, 'ann'), 'bob')
    const first = claim(both, { isReachable: (owner) => owner === 'bob' })
    expect(first.result).toMatchObject({ status: 'claimed', segment: { from: 2 } })
    expect(claim(first.state).result).toEqual({ status: 'busy' })
  })

  test('R2: every claim of a dead process is free at once, not only the one that is taken next', () => {
    const both = record(record(emptySession, 'ann'), 'bob')
    const dead = claim(both, { isReachable: (owner) => owner === 'bob' }).state
    const next = claim(dead, { isUnderWay: () => false, isReachable: (owner) => owner === 'ann' })
    expect(next.state.segments.map(({ state }) => state)).toEqual(['claimed', 'waiting'])
    expect(next.result).toMatchObject({ segment: { token: 2 } })
  })

  test('C12: a claim that its process did not survive is parked at the last allowed attempt', () => {
    let state = record(emptySession, 'ann')
    for (let attempt = 1; attempt <= 3; attempt += 1)
      state = claim(state, { isUnderWay: () => false, attemptsAllowed: 3 }).state
    const { result, events } = claim(state, { isUnderWay: () => false, attemptsAllowed: 3 })
    expect(result).toMatchObject({ status: 'parked', segment: { attempts: 3 } })
    expect(events).toMatchObject([
      { type: 'segment:parked', error: 'the process ended during its last allowed attempt' },
    ])
  })

  test('B3: a boundary covers what was recorded when it came, and nothing after', () => {
    const bounded = requestBoundary(record(emptySession, 'ann'), 'switch').state
    const claimed = claim(bounded, { scope: 'boundary' })
    expect(claimed.result).toMatchObject({ status: 'claimed', segment: { from: 1, to: 1, reason: 'switch' } })
    const later = record(record(emptySession, 'ann'), 'bob')
    expect(claim(later, { scope: 'boundary' }).result).toEqual({ status: 'clean' })
  })
})

describe('retractions', () => {
  const table: readonly [string, readonly (string | number)[], { segments: unknown; tail: unknown }][] = [
    ['the newest turn', ['ann', 'ann', 2], { segments: [], tail: { from: 1 } }],
    [
      'a whole owner: the one before goes on',
      ['ann', 'bob', 2, 'ann'],
      { segments: [], tail: { from: 1, gaps: [{ from: 2, to: 2 }] } },
    ],
    ['twice', ['bob', 'ann', 2, 'ann', 2, 'bob'], { segments: [], tail: { from: 1, gaps: [{ from: 2, to: 3 }] } }],
    [
      'through an earlier gap',
      ['ann', 'ann', 'ann', 2, 'ann', 3, 'ann'],
      { segments: [], tail: { from: 1, gaps: [{ from: 2, to: 4 }] } },
    ],
    ['everything', ['ann', 'bob', 1], { segments: [], tail: undefined }],
    ['from before the beginning', ['ann', -5], { segments: [], tail: undefined }],
    ['nothing that exists', ['ann', 7], { segments: [], tail: { from: 1 } }],
  ]
  test.each(table)('L13: retracting %s', (_name, steps, expected) => {
    let state = emptySession
    for (const step of steps) state = typeof step === 'string' ? record(state, step) : retractTurns(state, step).state
    const { segments, tail } = state
    expect({ segments, tail }).toMatchObject(expected)
  })
})

describe('what a retraction says of turns that were offered', () => {
  const table: readonly [string, readonly (string | number)[], number, { retracted: number; offered: number }][] = [
    ['an offered segment counts without its gaps', ['ann', 'ann', 2, 'ann', 'seal'], 1, { retracted: 0, offered: 2 }],
    [
      'a gap before the first named turn does not matter',
      ['ann', 'ann', 2, 'ann', 'seal'],
      3,
      { retracted: 0, offered: 1 },
    ],
    ['a gap may begin before what is named', ['ann', 'bob', 'bob', 2, 'ann', 'seal'], 3, { retracted: 0, offered: 1 }],
    ['turns withdrawn right before an open segment', ['ann', 'seal', 'bob', 2, 'ann'], 1, { retracted: 1, offered: 1 }],
    ['turns withdrawn before the first one', ['ann', 'ann', 1, 'bob'], -3, { retracted: 1, offered: 0 }],
    ['turns withdrawn at the end', ['ann', 'seal', 'ann', 2], 1, { retracted: 0, offered: 1 }],
  ]
  test.each(table)('L13: %s', (_name, steps, from, expected) => {
    let state = emptySession
    for (const step of steps) {
      if (typeof step === 'number') state = retractTurns(state, step).state
      else state = step === 'seal' ? claim(state).state : record(state, step)
    }
    expect(retractTurns(state, from).result).toEqual(expected)
  })
})

describe('time', () => {
  test('C12: delays double up to their limit, and the jitter keeps at least half of each', () => {
    const policy = { minDelayMs: 1_000, maxDelayMs: 300_000 }
    expect([1, 2, 3, 9, 10, 500].map((attempts) => retryDelay(attempts, policy, 1))).toEqual([
      1_000, 2_000, 4_000, 256_000, 300_000, 300_000,
    ])
    expect(retryDelay(1, policy, 0)).toBe(500)
    expect(retryDelay(1, { minDelayMs: 0, maxDelayMs: 0 }, 1)).toBe(0)
  })

  const off = { idleMs: undefined, maxTurns: undefined, maxAgeMs: undefined, minIntervalMs: 0 }
  test('B6: without a policy a session never wakes by itself; with one it wakes at the earliest', () => {
    const state = record(record(emptySession, 'ann', 1_000), 'ann', 5_000)
    expect(nextWake(state, off)).toBeUndefined()
    expect(nextWake(state, { ...off, idleMs: 10_000 })).toBe(15_000)
    expect(nextWake(state, { ...off, idleMs: 10_000, maxAgeMs: 12_000 })).toBe(13_000)
    expect(nextWake({ ...state, boundedAt: 4_000 }, { ...off, idleMs: 10_000, minIntervalMs: 60_000 })).toBe(64_000)
  })

  test('B6: a boundary comes exactly when it is due', () => {
    const state = record(emptySession, 'ann', 1_000)
    const policy = { ...off, idleMs: 10_000 }
    expect(applyBoundaries(state, policy, 10_999)).toBe(state)
    expect(applyBoundaries(state, policy, 11_000)).toMatchObject({
      boundary: { reason: 'idle', through: 1 },
      boundedAt: 11_000,
    })
  })

  test('C11: an answer about an older receipt counts for nothing', () => {
    const state = record(emptySession, 'ann')
    expect(settlePending(state, { key: 'k', receipt: 'r' }, { at, askAt: at, error: 'x' }).result).toBe('ignored')
  })
})

test('L12: turn ids are found among many, forgotten by range, and adding one never copies them all', () => {
  let ids: TurnIds | undefined
  for (let generation = 1; generation <= 5_000; generation += 1) ids = addTurnId(ids, `turn-${generation}`, generation)
  expect(ids?.length).toBeLessThanOrEqual(14)
  expect(findTurnId(ids, 'turn-1')).toBe(1)
  expect(findTurnId(ids, 'turn-5000')).toBe(5_000)
  expect(findTurnId(ids, 'turn-5001')).toBeUndefined()
  const kept = dropTurnIds(ids, 1, 4_999)
  expect(findTurnId(kept, 'turn-4999')).toBeUndefined()
  expect(findTurnId(kept, 'turn-5000')).toBe(5_000)
  expect(dropTurnIds(kept, 5_000, 5_000)).toBeUndefined()
})
