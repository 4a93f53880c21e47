import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordTurn } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { childPath } from './children/run-child.js'

async function readAll(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const all: unknown[] = []
  for await (const item of items) all.push(item)
  return all
}

const LATE: Record<string, (ledger: Ledger) => Promise<unknown>> = {
  'a count': (ledger) => ledger.stats(),
  'a list of sessions': (ledger) => readAll(ledger.sessions('all')),
  'the text of a session': (ledger) => readAll(ledger.outbox('s', 1, Infinity)),
  'its file': (ledger) => ledger.open(),
}

test.each(
  Object.keys(LATE).flatMap((what) => [
    [what, false],
    [what, true],
  ]) as [string, boolean][],
)('a closed ledger that is asked for %s says so and leaves the file alone (worker: %s)', async (what, worker) => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path, worker })
  await ledger.open()
  await ledger.close()
  await expect(LATE[what]?.(ledger)).rejects.toMatchObject({ code: 'CLOSED' })
  const next = sqliteLedger({ path })
  await next.open()
  await next.close()
})

test('a reader of the outbox who is overtaken by the close is told, and the file is free', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path })
  await ledger.open()
  const turn = { owner: 'agent', at: 1, turnId: undefined, messages: '["text"]' }
  // More than a page of them.
  const marks = Array.from({ length: 300 }, () => ledger.transact('s', (state) => recordTurn(state, turn)))
  await Promise.all(marks)
  const read = async (): Promise<void> => {
    for await (const { generation } of ledger.outbox('s', 1, Infinity)) if (generation === 1) await ledger.close()
  }
  await expect(read()).rejects.toMatchObject({ code: 'CLOSED' })
  const next = sqliteLedger({ path })
  await next.open()
  await next.close()
})

test('a ledger can be closed while it is being opened anew', () => {
  const args = ['--import', 'tsx', childPath('close-while-opening.ts'), join(temporaryDirectory(), 'ledger.db')]
  // A process of its own: one that never comes to an end could not be ended from within.
  const child = spawnSync(process.execPath, args, { timeout: 30_000, encoding: 'utf8' })
  expect([child.stdout, child.stderr, child.signal]).toEqual(['closed', '', null])
})
