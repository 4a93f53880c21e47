import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'

/** The coordinator's suite runs over every ledger: TIDEMARK_TEST_LEDGER says which one this run is about. */
export const ledgerKind = process.env['TIDEMARK_TEST_LEDGER'] ?? 'memory'

export function freshLedger(): Ledger {
  switch (ledgerKind) {
    case 'memory':
      return memoryLedger()
    case 'sqlite':
      return sqliteLedger({ path: join(temporaryDirectory(), 'ledger.db') })
    default:
      throw new Error(`No such test ledger: ${ledgerKind}`)
  }
}

let root: string | undefined

/** A directory of its own; all of them are gone when this process ends. */
export function temporaryDirectory(): string {
  if (root === undefined) {
    const directory = mkdtempSync(join(tmpdir(), 'tidemark-test-'))
    process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
    root = directory
  }
  return mkdtempSync(join(root, 'case-'))
}
