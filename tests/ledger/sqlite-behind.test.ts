import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { answer, claimSegment, recordTurn, succeed } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { countAppended, countChanges } from '../../src/ledger/sqlite/changes.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { claimRequest } from '../../src/testing/ledger-model.js'
import { AbandonedLedgers } from '../support/abandoned-ledgers.js'
import { insideFile, temporaryDirectory } from '../support/ledgers.js'

async function mark(ledger: Ledger, index: number, sessionId = 's'): Promise<number> {
  const turn = { owner: 'agent', at: 1_000 + index, turnId: undefined, messages: `["text ${index}"]` }
  return (await ledger.transact(sessionId, (state) => recordTurn(state, turn))).result
}

async function markTo(ledger: Ledger, last: number, sessionId = 's'): Promise<void> {
  for (let index = 1; index <= last; index += 1) await mark(ledger, index, sessionId)
}

async function read(ledger: Ledger, sessionId = 's'): Promise<{ generation: number; span: number; texts: unknown[] }> {
  const { result } = await ledger.transact(sessionId, (state) => answer(state, state))
  const texts: unknown[] = []
  for await (const { messages } of ledger.outbox(sessionId, 1, Infinity)) texts.push(messages)
  return { generation: result.generation, span: result.tail?.span ?? -1, texts }
}

async function commitAll(ledger: Ledger, sessionId = 's'): Promise<void> {
  const { result } = await ledger.transact(sessionId, (state) =>
    claimSegment(state, claimRequest(ledger.instance, 'key', 1)),
  )
  if (result.status !== 'claimed') throw new Error(`nothing to claim: ${result.status}`)
  await ledger.transact(sessionId, (state) => succeed(state, result.segment))
}

const texts = (count: number): string[] => Array.from({ length: count }, (_, index) => `["text ${index + 1}"]`)

function freshPath(): string {
  return join(temporaryDirectory(), 'ledger.db')
}

test('a turn with text is one row of the outbox; its session is written once in so many rows', async () => {
  const ledgers = new AbandonedLedgers({ rows: 10, noteEvery: 5 })
  const ledger = await ledgers.open(freshPath())
  onTestFinished(() => ledger.close())
  await markTo(ledger, 100)
  expect(ledgers.written.map(countAppended)).toEqual(Array.from({ length: 100 }, () => 1))
  const more = ledgers.written.filter((changes) => countChanges(changes) > 1)
  // The first turn makes the session; then its row and the note follow every eleven turns.
  expect(ledgers.written[0]?.inserted).toHaveLength(1)
  expect(more.slice(1).every(({ marked, noted }) => marked.length === 1 && noted.length === 1)).toBe(true)
  expect(more).toHaveLength(1 + Math.floor(99 / 11))
})

test('L10: what is behind when the process ends is caught up with from the outbox, the span of the tail too', async () => {
  const ledgers = new AbandonedLedgers()
  const path = freshPath()
  let ledger = await ledgers.open(path)
  await markTo(ledger, 50)
  expect(ledgers.written.flatMap(({ marked, updated }) => [...marked, ...updated])).toEqual([])
  ledger = await ledgers.reopen(ledger)
  expect(await read(ledger)).toEqual({ generation: 50, span: 49, texts: texts(50) })
  expect(await mark(ledger, 51)).toBe(51)
  ledger = await ledgers.reopen(ledger)
  expect(await read(ledger)).toEqual({ generation: 51, span: 50, texts: texts(51) })
  await ledger.close()
})

test.each(['unfinished', 'all'] as const)(
  'a session that is behind is listed as it is, not as its row says (%s)',
  async (which) => {
    const ledger = await new AbandonedLedgers().open(freshPath())
    onTestFinished(() => ledger.close())
    await markTo(ledger, 20, 'one')
    await markTo(ledger, 30, 'other')
    const listed: [string, number][] = []
    for await (const { sessionId, state } of ledger.sessions(which)) listed.push([sessionId, state.generation])
    expect(listed).toEqual([
      ['one', 20],
      ['other', 30],
    ])
  },
)

test.each([
  ['without text after one with text', ['["a"]', '["b"]', undefined]],
  ['with text after one without', [undefined, '["a"]']],
  ['of both kinds in turns', ['["a"]', undefined, '["b"]', undefined, '["c"]', '["d"]']],
])('L10: a turn %s is as durable as any other', async (_name, turns) => {
  const ledgers = new AbandonedLedgers()
  let ledger = await ledgers.open(freshPath())
  for (const [index, messages] of turns.entries()) {
    await ledger.transact('s', (state) => recordTurn(state, { owner: 'a', at: index, turnId: undefined, messages }))
  }
  ledger = await ledgers.reopen(ledger)
  const expected = turns.filter((messages) => messages !== undefined)
  expect(await read(ledger)).toEqual({ generation: turns.length, span: turns.length - 1, texts: expected })
  await ledger.close()
})

test('row numbers never start again: an outbox that was emptied does not hide the turns that come after it', async () => {
  const ledgers = new AbandonedLedgers({ rows: 10, noteEvery: 20 })
  let ledger = await ledgers.open(freshPath())
  await markTo(ledger, 40)
  await commitAll(ledger)
  ledger = await ledgers.reopen(ledger)
  for (let index = 41; index <= 46; index += 1) expect(await mark(ledger, index)).toBe(index)
  ledger = await ledgers.reopen(ledger)
  expect((await read(ledger)).generation).toBe(46)
  await ledger.close()
})

test('a closed file is not behind', async () => {
  const path = freshPath()
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await markTo(ledger, 25)
  await ledger.close()
  const found = await insideFile(path, (db) => [
    db.prepare('SELECT generation, tail_head FROM sessions').get(),
    db.prepare('SELECT written_through, written_guard FROM ledger').get(),
  ])
  expect(found).toEqual([
    { generation: 25, tail_head: 25 },
    { written_through: 25, written_guard: -26 },
  ])
})

test('a disk that fails while the file is closed loses nothing: what is behind is durable', async () => {
  const ledgers = new AbandonedLedgers(undefined, (call) => (isFailing && call === 'apply' ? 'before' : undefined))
  const path = freshPath()
  let isFailing = false
  const ledger = await ledgers.open(path)
  await markTo(ledger, 25)
  isFailing = true
  await ledger.close()
  isFailing = false
  const next = await ledgers.open(path)
  expect(await read(next)).toEqual({ generation: 25, span: 24, texts: texts(25) })
  await next.close()
})

test('a note of how far sessions are written that is damaged is as good as none', async () => {
  const ledgers = new AbandonedLedgers({ rows: 10, noteEvery: 1 })
  const path = freshPath()
  const ledger = await ledgers.open(path)
  await markTo(ledger, 25)
  await ledgers.abandon(ledger)
  await insideFile(path, (db) => db.exec('UPDATE ledger SET written_through = 1000'))
  const next = await ledgers.open(path)
  expect(await read(next)).toEqual({ generation: 25, span: 24, texts: texts(25) })
  await next.close()
})

test('a file of version 1, whose sessions know all of their rows, is brought up to date', async () => {
  const path = freshPath()
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await markTo(ledger, 25)
  await ledger.close()
  await insideFile(path, (db) => {
    for (const column of ['written_guard', 'written_through']) db.exec(`ALTER TABLE ledger DROP COLUMN ${column}`)
    db.exec('PRAGMA user_version = 1')
  })
  const next = sqliteLedger({ path })
  await next.open()
  expect(await read(next)).toEqual({ generation: 25, span: 24, texts: texts(25) })
  expect(await mark(next, 26)).toBe(26)
  await next.close()
  expect(await insideFile(path, (db) => db.prepare('PRAGMA user_version').get())).toEqual({ user_version: 2 })
})

test.each([
  ['of a session that is not there', 'UPDATE outbox SET session = 77 WHERE id = 25'],
  ['that does not follow the one before it', 'UPDATE outbox SET previous = 3 WHERE id = 25'],
])('a row %s: nobody knows whose turn was lost, so the file is refused and kept aside', async (_name, damage) => {
  const ledgers = new AbandonedLedgers()
  const path = freshPath()
  const ledger = await ledgers.open(path)
  await markTo(ledger, 25)
  await ledgers.abandon(ledger)
  await insideFile(path, (db) => db.exec(damage))
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({
    code: 'CORRUPT',
    details: { keptAs: expect.stringContaining('.corrupt-') as string },
  })
})

test('a damaged row that fits its session is the trouble of that session alone', async () => {
  const ledgers = new AbandonedLedgers()
  const path = freshPath()
  const ledger = await ledgers.open(path)
  await markTo(ledger, 5, 'one')
  await markTo(ledger, 5, 'other')
  await ledgers.abandon(ledger)
  await insideFile(path, (db) => db.exec('UPDATE outbox SET completed_at = 7 WHERE id = 4'))
  const next = await ledgers.open(path)
  await expect(read(next, 'one')).rejects.toMatchObject({ code: 'CORRUPT' })
  expect(await read(next, 'other')).toEqual({ generation: 5, span: 4, texts: texts(5) })
  await next.close()
})
