import assert from 'node:assert/strict'
import { closeSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { claimSegment, recordTurn, succeed } from '../../../src/core/index.js'
import type { Ledger } from '../../../src/ledger/ledger.js'
import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'
import { claimRequest } from '../../../src/testing/ledger-model.js'
import { setFsyncFailure } from '../../support/fsync-shim.js'

/** Runs under the shim: the same work again and again, and each time a later sync fails. Prints what it saw. */
const [directory = '', controlPath = '', worker = 'false', step = '1'] = process.argv.slice(2)
const TURNS = 8

function syncsLeft(): number {
  const numbers = Buffer.alloc(4)
  const file = openSync(controlPath, 'r')
  readSync(file, numbers, 0, 4, 0)
  closeSync(file)
  return numbers.readInt32LE(0)
}

let failures = 0

/** Repeats a call that the ledger refused: it must have said so, and the next call must open the file anew. */
async function insist<T>(ledger: Ledger, call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries += 1) {
    try {
      const result = await call()
      assert.equal(ledger.health().status, 'ok')
      return result
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'LEDGER_FAILED', String(error))
      assert.equal(ledger.health().status, 'unhealthy')
      assert.ok(tries < 3, `the ledger did not come back: ${String(error)}`)
      failures += 1
    }
  }
}

const mark = (ledger: Ledger, index: number): Promise<number> =>
  insist(ledger, async () => {
    const turn = { owner: 'agent', at: index, turnId: `turn-${index}`, messages: JSON.stringify([`text ${index}`]) }
    return (await ledger.transact('s', (state) => recordTurn(state, turn))).result
  })

let failAt = 1 - Number(step)
let runs = 0
let wasReached = true
for (; wasReached;) {
  failAt += Number(step)
  runs += 1
  const path = join(directory, `ledger-${failAt}.db`)
  const open = (): Ledger => sqliteLedger({ path, worker: worker === 'true' })
  setFsyncFailure(controlPath, failAt)
  let ledger = open()
  await ledger.open().catch((error: unknown) => {
    failures += 1
    assert.ok(error instanceof Error)
    return undefined
  })
  for (let index = 1; index <= TURNS; index += 1) assert.equal(await mark(ledger, index), index)
  await insist(ledger, () => ledger.transact('s', (state) => claimSegment(state, claimRequest('i', 'key', 1))))
  assert.equal(await mark(ledger, TURNS + 1), TURNS + 1)
  await insist(ledger, () => ledger.transact('s', (state) => succeed(state, { key: 'key', token: state.token })))
  await ledger.close()
  wasReached = syncsLeft() === 0
  setFsyncFailure(controlPath, 0)

  ledger = open()
  await ledger.open()
  const { state } = await ledger.transact('s', (found) => ({ state: found, result: undefined, events: [] }))
  assert.equal(state.generation, TURNS + 1)
  assert.deepEqual([state.segments.length, state.tail?.from], [0, TURNS + 1])
  const texts: string[] = []
  for await (const entry of ledger.outbox('s', 1, 99)) texts.push(String(entry.messages))
  assert.deepEqual(texts, [`["text ${TURNS + 1}"]`])
  await ledger.close()
}
process.stdout.write(`${JSON.stringify({ runs, failures })}\n`)
