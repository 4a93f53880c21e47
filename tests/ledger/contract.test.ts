import { join } from 'node:path'
import { describe, it } from 'vitest'
import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { ledgerContract } from '../../src/testing/index.js'
import { temporaryDirectory } from '../support/ledgers.js'

describe('the memory ledger', () => {
  ledgerContract({ it, open: () => Promise.resolve(memoryLedger()) })
})

describe.each([
  ['on this thread', false],
  ['on a thread of its own', true],
])('the SQLite ledger %s', (_name, worker) => {
  const paths = new WeakMap<Ledger, string>()
  const openAt = async (path: string): Promise<Ledger> => {
    const ledger = sqliteLedger({ path, worker })
    paths.set(ledger, path)
    await ledger.open()
    return ledger
  }
  for (const seed of worker ? [1] : [1, 2, 3]) {
    ledgerContract({
      it: seed === 1 ? it : (name, run) => name.startsWith('a random walk') && it(name, run),
      open: () => openAt(join(temporaryDirectory(), 'ledger.db')),
      reopen: async (ledger) => {
        await ledger.close()
        return openAt(paths.get(ledger)!)
      },
      seed,
    })
  }
})
