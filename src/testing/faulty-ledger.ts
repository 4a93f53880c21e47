import { TidemarkError } from '../base/errors.js'
import type { Ledger } from '../ledger/ledger.js'

export interface FaultyLedger extends Ledger {
  /** How many of the next transactions fail before they are written. */
  failNext: number
  /** How many of the next transactions are written and then reported as failed: their fate is unknown to the caller. */
  loseNext: number
}

/** A ledger whose writes fail when the test says so. */
export function faultyLedger(inner: Ledger): FaultyLedger {
  const refuse = (): never => {
    throw new TidemarkError('LEDGER_FAILED', 'The ledger failed, as the test asked it to.')
  }
  const faulty: FaultyLedger = {
    failNext: 0,
    loseNext: 0,
    supports: inner.supports,
    instance: inner.instance,
    open: () => inner.open(),
    isAlive: (instance) => inner.isAlive(instance),
    async transact(sessionId, decide) {
      if (faulty.failNext > 0) {
        faulty.failNext -= 1
        refuse()
      }
      const decision = await inner.transact(sessionId, decide)
      if (faulty.loseNext > 0) {
        faulty.loseNext -= 1
        refuse()
      }
      return decision
    },
    sessions: (which) => inner.sessions(which),
    outbox: (sessionId, from, to) => inner.outbox(sessionId, from, to),
    stats: () => inner.stats(),
    health: () => (faulty.failNext > 0 ? { status: 'unhealthy', reason: 'failing as told' } : inner.health()),
    close: () => inner.close(),
  }
  return faulty
}
