import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'

export interface PersistentLedger extends Ledger {
  /** What the next listings of sessions wait for, oldest first. */
  readonly gates: (() => Promise<void>)[]
}

/** A ledger that survives its openers: what one of them left, the next one finds, as long as both have the same `inner`. */
export function persistentLedger(inner: Ledger = memoryLedger()): PersistentLedger {
  const gates: (() => Promise<void>)[] = []
  return {
    gates,
    supports: { persistent: true, shared: false },
    instance: inner.instance,
    open: () => inner.open(),
    isAlive: (instance) => inner.isAlive(instance),
    transact: (sessionId, decide) => inner.transact(sessionId, decide),
    async *sessions(which) {
      await gates.shift()?.()
      yield* inner.sessions(which)
    },
    outbox: (sessionId, from, to) => inner.outbox(sessionId, from, to),
    stats: () => inner.stats(),
    health: () => inner.health(),
    close: () => Promise.resolve(),
  }
}
