import { statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadSqlite } from '../../src/base/sqlite.js'
import { answer, claimSegment, discard, recordTurn, succeed } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { closeConnection } from '../../src/ledger/sqlite/release.js'
import { claimRequest } from '../../src/testing/ledger-model.js'
import { temporaryDirectory } from '../support/ledgers.js'

async function openLedger(path: string): Promise<Ledger> {
  const ledger = sqliteLedger({ path })
  onTestFinished(() => ledger.close())
  await ledger.open()
  return ledger
}

async function markMany(ledger: Ledger, sessionId: string, count: number, messages: string): Promise<void> {
  for (let left = count; left > 0; left -= 1_000) {
    const marks = Array.from({ length: Math.min(left, 1_000) }, () =>
      ledger.transact(sessionId, (state) => recordTurn(state, { owner: 'a', at: 1, turnId: undefined, messages })),
    )
    await Promise.all(marks)
  }
}

async function commitAll(ledger: Ledger, sessionId: string): Promise<void> {
  await ledger.transact(sessionId, (state) => claimSegment(state, claimRequest(ledger.instance, sessionId, 1)))
  await ledger.transact(sessionId, (state) => succeed(state, { key: sessionId, token: state.token }))
}

async function rowCounts(path: string): Promise<Record<string, number>> {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(path)
  const count = (table: string): number => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.['n'])
  const counts = Object.fromEntries(
    ['sessions', 'segments', 'outbox', 'leftovers'].map((table) => [table, count(table)]),
  )
  await closeConnection(db)
  return counts
}

/** Tidying is done between batches; how many it takes does not matter. */
async function untilTidy(ledger: Ledger, isTidy: () => boolean): Promise<void> {
  for (let batches = 0; !isTidy(); batches += 1) {
    expect(batches, 'the ledger was not tidied').toBeLessThan(20_000)
    await ledger.transact('other', (state) => answer(state, undefined))
  }
}

test('a committed session leaves one small row, and a discarded one too', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = await openLedger(path)
  await markMany(ledger, 'committed', 50, '["text"]')
  await commitAll(ledger, 'committed')
  await markMany(ledger, 'discarded', 50, '["text"]')
  await ledger.transact('discarded', (state) => discard(state, true))
  await ledger.close()
  expect(await rowCounts(path)).toEqual({ sessions: 2, segments: 0, outbox: 0, leftovers: 0 })
})

test('the file shrinks again when a great deal of text was committed', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = await openLedger(path)
  for (let session = 0; session < 20; session += 1)
    await markMany(ledger, `s${session}`, 100, JSON.stringify(['x'.repeat(4_000)]))
  await ledger.close()
  const full = statSync(path).size
  const next = await openLedger(path)
  for (let session = 0; session < 20; session += 1) await commitAll(next, `s${session}`)
  let calls = 0
  await untilTidy(next, () => ++calls > 400)
  await next.close()
  const shrunk = statSync(path).size
  expect(full).toBeGreaterThan(8_000_000)
  expect(shrunk).toBeLessThan(full / 4)
})

test('the file does not grow while the same amount of work comes and goes', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = await openLedger(path)
  const sizes: number[] = []
  for (let round = 0; round < 30; round += 1) {
    await markMany(ledger, 's', 100, JSON.stringify(['x'.repeat(2_000)]))
    await commitAll(ledger, 's')
    sizes.push(statSync(path).size + statSync(`${path}-wal`).size)
  }
  expect(Math.max(...sizes)).toBeLessThan(24_000_000)
  await ledger.close()
  expect(statSync(path).size).toBeLessThan(1_500_000)
})

test('L9: a segment of 100,000 turns is streamed oldest first in bounded memory, and dropped without a long pause', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = await openLedger(path)
  const TURNS = 100_000
  await markMany(ledger, 's', TURNS, JSON.stringify(['x'.repeat(900)]))
  await ledger.transact('s', (state) => claimSegment(state, claimRequest(ledger.instance, 's', 1)))
  const before = process.memoryUsage().rss
  let highest = 0
  let expected = 1
  for await (const { generation } of ledger.outbox('s', 1, TURNS)) {
    if (generation !== expected) throw new Error(`generation ${generation} came instead of ${expected}`)
    expected += 1
    if (generation % 1_000 === 0) highest = Math.max(highest, process.memoryUsage().rss - before)
  }
  expect(expected - 1).toBe(TURNS)
  // All of it would be 100 MB of text, twice that in memory.
  expect(highest).toBeLessThan(64_000_000)
  await ledger.transact('s', (state) => succeed(state, { key: 's', token: 1 }))
  const left: number[] = []
  for await (const { generation } of ledger.outbox('s', 1, TURNS)) left.push(generation)
  expect(left).toEqual([])
  let calls = 0
  await untilTidy(ledger, () => ++calls > 3_000)
  await ledger.close()
  expect(await rowCounts(path)).toEqual({ sessions: 1, segments: 0, outbox: 0, leftovers: 0 })
})
