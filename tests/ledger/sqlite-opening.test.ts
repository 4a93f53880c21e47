import { chmodSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { loadSqlite } from '../../src/base/sqlite.js'
import { recordTurn } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { openConnection } from '../../src/ledger/sqlite/connection.js'
import { nameNetworkFileSystem } from '../../src/ledger/sqlite/files.js'
import { sqliteLedger, type SqliteLedgerOptions } from '../../src/ledger/sqlite/index.js'
import { closeConnection } from '../../src/ledger/sqlite/release.js'
import { migrate, MIGRATIONS, readSchema } from '../../src/ledger/sqlite/schema.js'
import { insideFile, temporaryDirectory } from '../support/ledgers.js'

function freshPath(): string {
  return join(temporaryDirectory(), 'private', 'ledger.db')
}

async function openLedger(path: string, options: Partial<SqliteLedgerOptions> = {}): Promise<Ledger> {
  const ledger = sqliteLedger({ path, ...options })
  onTestFinished(() => ledger.close())
  await ledger.open()
  return ledger
}

async function mark(ledger: Ledger, sessionId = 's'): Promise<number> {
  const turn = { owner: 'agent', at: 1, turnId: undefined, messages: '["secret words"]' }
  return (await ledger.transact(sessionId, (state) => recordTurn(state, turn))).result
}

test.each([
  ['an empty path', { path: '' }],
  ['no path', {}],
  ['a path with NUL', { path: 'a\0b' }],
  ['a path that means memory', { path: ':memory:' }],
  ['a worker that is a number', { path: 'x', worker: 1 }],
])('%s is a TypeError before anything is opened', (_name, options) => {
  expect(() => sqliteLedger(options as SqliteLedgerOptions)).toThrow(TypeError)
})

test('nothing is opened or created before open()', () => {
  const path = freshPath()
  sqliteLedger({ path })
  expect(readdirSync(dirname(dirname(path)))).toEqual([])
})

test('directory and files are private to this user, the write-ahead log included', async () => {
  const path = freshPath()
  const ledger = await openLedger(path)
  await mark(ledger)
  const modes = readdirSync(dirname(path)).map((name) => [name, statSync(join(dirname(path), name)).mode & 0o777])
  expect(Object.fromEntries(modes)).toEqual({ 'ledger.db': 0o600, 'ledger.db-wal': 0o600, 'ledger.db-holder': 0o600 })
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
})

test('every pragma that durability rests on is in force', async () => {
  const path = freshPath()
  const db = await openConnection({ path, allowNetworkFileSystem: false, at: 1 })
  onTestFinished(() => closeConnection(db))
  const read = (name: string): unknown => Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]
  const names = ['journal_mode', 'synchronous', 'fullfsync', 'checkpoint_fullfsync', 'locking_mode', 'busy_timeout']
  expect(names.map(read)).toEqual(['wal', 2, 1, 1, 'exclusive', 0])
  expect([read('auto_vacuum'), read('user_version')]).toEqual([2, MIGRATIONS.length])
})

test.each([false, true])(
  'R3: a second opener is refused at once, with path, pid, host and time (worker: %s)',
  async (worker) => {
    const path = freshPath()
    const first = await openLedger(path, { worker, clock: { now: () => Date.parse('2026-01-02T03:04:05Z') } })
    const second = sqliteLedger({ path, worker })
    await expect(second.open()).rejects.toMatchObject({
      code: 'LOCKED',
      message: expect.stringContaining(
        `${path} is open in process ${process.pid} on ${hostname()} since 2026-01-02T03:04:05.000Z`,
      ) as string,
      details: { path, pid: process.pid, host: hostname(), since: '2026-01-02T03:04:05.000Z' },
    })
    await second.close()
    expect(await mark(first)).toBe(1)
    await first.close()
    expect(await mark(await openLedger(path, { worker }))).toBe(2)
  },
)

test('R3: a holder whose note is unreadable is still the holder', async () => {
  const path = freshPath()
  await openLedger(path)
  writeFileSync(`${path}-holder`, 'not json')
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({ code: 'LOCKED', details: { path } })
})

test('a holder’s note that cannot be read or written is an error, and nothing stays locked by it', async () => {
  const path = freshPath()
  mkdirSync(`${path}-holder`, { recursive: true })
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  rmdirSync(`${path}-holder`)
  expect(await mark(await openLedger(path))).toBe(1)
})

test('a file from a newer version is refused with both versions, and left as it is', async () => {
  const path = freshPath()
  const ledger = await openLedger(path)
  await mark(ledger)
  await ledger.close()
  await insideFile(path, (db) => db.exec(`PRAGMA user_version = ${MIGRATIONS.length + 6}`))
  const before = readFileSync(path)
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({
    code: 'FILE_NEWER',
    details: { path, version: MIGRATIONS.length + 6, known: MIGRATIONS.length },
  })
  expect(readFileSync(path).equals(before)).toBe(true)
})

test('somebody else’s database, or no database at all, is refused and left where it is', async () => {
  const path = freshPath()
  mkdirSync(dirname(path), { recursive: true })
  await insideFile(path, (db) => db.exec('CREATE TABLE recipes (name TEXT)'))
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({
    code: 'CORRUPT',
    message: expect.stringContaining('not a tidemark ledger') as string,
  })
  const text = join(dirname(path), 'letter.txt')
  writeFileSync(text, 'Dear reader, '.repeat(100))
  await expect(sqliteLedger({ path: text }).open()).rejects.toMatchObject({ code: 'CORRUPT' })
  expect(readdirSync(dirname(path)).toSorted()).toEqual(['ledger.db', 'letter.txt'])
})

test('migrations run in order, all or none, and end in the newest version', async () => {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(':memory:')
  const steps = ['CREATE TABLE one (a)', 'CREATE TABLE two (b)', 'CREATE TABLE broken (']
  expect(() => migrate(db, 0, 3, steps)).toThrow()
  expect(readSchema(db)).toBe('[]')
  migrate(db, 0, 1, steps)
  migrate(db, 1, 2, steps)
  expect(JSON.parse(readSchema(db))).toHaveLength(2)
  expect(db.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 2 })
  db.close()
})

test.each([
  ['NFS', 0x6969],
  ['SMB', 0xfe534d42],
  ['SMB', 0xfe534d42 | 0],
  ['FUSE', 0x65735546],
  ['9p', 0x01021997],
  [undefined, 0xef53],
  [undefined, 0x58465342],
  [undefined, 0x01021994],
])('%s is what a file system of type %i is called when it is refused', (name, type) => {
  expect(nameNetworkFileSystem(type)).toBe(name)
})

test('a directory that cannot be written is an error that names the path', async () => {
  const path = join(temporaryDirectory(), 'file', 'ledger.db')
  writeFileSync(dirname(path), '')
  chmodSync(dirname(path), 0o400)
  await expect(sqliteLedger({ path }).open()).rejects.toThrow(dirname(path))
})

test('V3: neither messages nor ids stand in the holder’s note, in errors or in the log', async () => {
  const path = freshPath()
  const lines: unknown[] = []
  const log = (...line: unknown[]): unknown => lines.push(line)
  const logger = { debug: log, info: log, warn: log, error: log } as NonNullable<SqliteLedgerOptions['logger']>
  const ledger = await openLedger(path, { logger })
  await mark(ledger, 'private-session')
  await ledger.close()
  await insideFile(path, (db) => db.exec(`UPDATE sessions SET generation = 7`))
  const damaged = await openLedger(path, { logger })
  const refusal: unknown = await mark(damaged, 'private-session').catch((error: unknown) => error)
  expect(refusal).toMatchObject({ code: 'CORRUPT' })
  const said = JSON.stringify([lines, String(refusal), readFileSync(`${path}-holder`, 'utf8')])
  expect(said).not.toMatch(/secret words|private-session/)
})
