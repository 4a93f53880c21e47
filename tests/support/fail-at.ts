import type { FaultyLedger } from '../../src/testing/index.js'

/** Makes the n-th transaction from now fail (or be lost), and no other. The returned function calls it off. */
export function failAt(ledger: FaultyLedger, position: number, how: 'failNext' | 'loseNext' = 'failNext'): () => void {
  const transact = ledger.transact.bind(ledger)
  let left = position
  ledger.transact = (sessionId, decide) => {
    if (left === 0) ledger[how] = 1
    left -= 1
    return transact(sessionId, decide)
  }
  return () => {
    left = -1
  }
}
