import { join } from 'node:path'
import { describe, it } from 'vitest'
import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { ledgerContract } from '../../src/testing/index.js'
import { AbandonedLedgers } from '../support/abandoned-ledgers.js'
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

/** Their sessions' rows are behind the outbox: by so little that they are written during the walk too, and by far. */
describe.each([{ rows: 5, noteEvery: 3 }, undefined])(
  'the SQLite ledger of a process that never closes it (%o)',
  (lag) => {
    const ledgers = new AbandonedLedgers(lag)
    for (const seed of [1, 2, 3, 4, 5]) {
      ledgerContract({
        it: seed === 1 ? it : (name, run) => name.startsWith('a random walk') && it(name, run),
        open: () => ledgers.open(join(temporaryDirectory(), 'ledger.db')),
        reopen: (ledger) => ledgers.reopen(ledger),
        seed,
      })
    }
  },
)
