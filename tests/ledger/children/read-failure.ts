import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { recordTurn } from '../../../src/core/index.js'
import type { Ledger } from '../../../src/ledger/ledger.js'
import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'
import { readsLeft, setReadFailure } from '../../support/fsync-shim.js'

/** Runs under the shim: the same file is opened again and again, and each time a later read fails. Prints what it saw. */
const [directory = '', controlPath = ''] = process.argv.slice(2)
const TURNS = 30
const path = join(directory, 'ledger.db')

async function countTurns(ledger: Ledger): Promise<number> {
  let turns = 0
  for await (const { messages } of ledger.outbox('s', 1, Infinity)) if (messages !== undefined) turns += 1
  return turns
}

const first = sqliteLedger({ path })
await first.open()
for (let at = 1; at <= TURNS; at += 1) {
  const turn = { owner: 'agent', at, turnId: undefined, messages: JSON.stringify(['x'.repeat(3_000)]) }
  await first.transact('s', (state) => recordTurn(state, turn))
}
await first.close()
const files = readdirSync(directory)

let runs = 0
let refused = 0
for (let wasReached = true; wasReached;) {
  runs += 1
  setReadFailure(controlPath, runs)
  const ledger = sqliteLedger({ path })
  await ledger.open().catch((error: unknown) => {
    refused += 1
    assert.equal((error as { code?: string }).code, 'LEDGER_FAILED', String(error))
  })
  wasReached = readsLeft(controlPath) === 0
  setReadFailure(controlPath, 0)
  assert.equal(await countTurns(ledger), TURNS)
  await ledger.close()
  assert.deepEqual(readdirSync(directory), files)
}
process.stdout.write(`${JSON.stringify({ runs, refused })}\n`)
