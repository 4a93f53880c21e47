import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'

/** The coordinator's suite runs over every ledger: TIDEMARK_TEST_LEDGER says which one this run is about. */
export const ledgerKind = process.env['TIDEMARK_TEST_LEDGER'] ?? 'memory'

export function freshLedger(): Ledger {
  if (ledgerKind !== 'memory') throw new Error(`No such test ledger: ${ledgerKind}`)
  return memoryLedger()
}
