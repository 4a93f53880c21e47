import { expectTypeOf, test } from 'vitest'
import pino from 'pino'
import {
  type CommitOutcome,
  type DrainReport,
  type Ledger,
  type Logger,
  type MemoryAgent,
  MemoryLifecycle,
  memoryLedger,
  type SessionSnapshot,
  type TidemarkError,
} from '../../src/index.js'

declare const lifecycle: MemoryLifecycle
declare const agent: MemoryAgent

test('the public names have their promised shapes', () => {
  expectTypeOf(MemoryLifecycle.open).returns.resolves.toEqualTypeOf<MemoryLifecycle>()
  expectTypeOf(lifecycle.markTurnCompleted).returns.resolves.toBeNumber()
  expectTypeOf(lifecycle.commit('s')).resolves.toEqualTypeOf<CommitOutcome>()
  expectTypeOf(lifecycle.drain()).resolves.toEqualTypeOf<DrainReport>()
  expectTypeOf(lifecycle.inspect('s')).resolves.toEqualTypeOf<SessionSnapshot | undefined>()
  expectTypeOf(lifecycle.sessions()).toExtend<AsyncIterable<SessionSnapshot>>()
  expectTypeOf(lifecycle.hold('s')).toEqualTypeOf<() => void>()
  expectTypeOf(lifecycle.switchSession('a', 'b')).toBeVoid()
  expectTypeOf(lifecycle).toExtend<AsyncDisposable>()
  expectTypeOf(memoryLedger()).toEqualTypeOf<Ledger>()
  expectTypeOf<TidemarkError>().toExtend<Error>()
  expectTypeOf(pino()).toExtend<Logger>()
})

test('an outcome narrows by its status', () => {
  const outcome = {} as CommitOutcome
  if (outcome.status === 'committed') expectTypeOf(outcome.attempt).toBeNumber()
  if (outcome.status === 'failed') expectTypeOf(outcome.error).toBeUnknown()
  // @ts-expect-error a clean outcome has no range
  if (outcome.status === 'clean') void outcome.from
})

test('listeners know their event', () => {
  lifecycle.on('commit:failed', (event) => {
    expectTypeOf(event.error).toBeString()
    expectTypeOf(event.sessionId).toBeString()
  })
  lifecycle.on('drain:finished', ({ remaining }) => expectTypeOf(remaining).toBeNumber())
  // @ts-expect-error there is no such event
  lifecycle.on('commit:exploded', () => undefined)
  // @ts-expect-error a turn has no receipt
  lifecycle.on('turn:recorded', ({ receipt }) => void receipt)
})

test('misuse does not compile', () => {
  // @ts-expect-error unknown option
  void MemoryLifecycle.open({ conccurency: 3 })
  // @ts-expect-error unknown boundary
  void MemoryLifecycle.open({ boundaries: { idle: 3 } })
  // @ts-expect-error an agent must be able to commit
  lifecycle.registerAgent('s', { agentId: 'a' })
  // @ts-expect-error a session id is a string
  void lifecycle.markTurnCompleted(7)
  // @ts-expect-error unknown reason
  void lifecycle.commit('s', { reason: 'because' })
  // @ts-expect-error accepted needs a receipt
  lifecycle.registerAgent('s', { commitMemorySession: () => ({ status: 'accepted' }) })
  // @ts-expect-error the constructor is private: a lifecycle is opened
  new MemoryLifecycle({})
  lifecycle.registerAgent('s', agent)
  lifecycle.registerAgent('s', { commitMemorySession: async () => ({ status: 'accepted', receipt: 'r' }) })
  lifecycle.registerAgent('s', { commitMemorySession() {} })
})
