import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { SqlDatabase } from '../../src/base/sqlite.js'
import { answer, claimSegment, recordTurn, retractTurns } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { openConnection } from '../../src/ledger/sqlite/connection.js'
import { LocalHost, type StoreHost } from '../../src/ledger/sqlite/host.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'
import { abandonConnection } from '../../src/ledger/sqlite/release.js'
import { Store } from '../../src/ledger/sqlite/store.js'
import { findWalDamage } from '../../src/ledger/sqlite/wal.js'
import { claimRequest, plainState } from '../../src/testing/ledger-model.js'
import { recordingLogger } from '../../src/testing/index.js'
import { AbandonedLedgers } from '../support/abandoned-ledgers.js'
import { turnsOfTheLoop } from '../support/gate.js'
import { insideFile, temporaryDirectory } from '../support/ledgers.js'
import { WatchedHost } from '../support/watched-host.js'

/** TIDEMARK_TEST_ALL=1 looks at every single byte; otherwise at every so many, always the same ones. */
const isThorough = process.env['TIDEMARK_TEST_ALL'] === '1'

/** In memory if that can be had: thousands of ledgers are opened. */
function fastDirectory(): string {
  const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const directory = mkdtempSync(join(parent, 'tidemark-damage-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

const SESSIONS = ['alpha', 'beta', 'gamma'] as const

async function fill(ledger: Ledger): Promise<void> {
  for (const [index, sessionId] of SESSIONS.entries()) {
    for (let turn = 1; turn <= 3 + index; turn += 1) {
      const messages = JSON.stringify([`the text of ${sessionId} ${turn}`])
      const whole = { owner: `agent-${index}`, at: 1_700_000_000_000 + turn, turnId: `${sessionId}-${turn}`, messages }
      await ledger.transact(sessionId, (state) => recordTurn(state, whole))
      if (turn === 2) {
        await ledger.transact(sessionId, (state) => claimSegment(state, claimRequest('earlier', `key-${index}`, 5)))
      }
    }
  }
}

/** Everything a ledger says, or the code it refuses with; per session, because damage may hit only one of them. */
async function readAll(path: string): Promise<Map<string, string>> {
  const ledger = sqliteLedger({ path })
  const found = new Map<string, string>()
  const codeOf = (error: unknown): string => `refused: ${String((error as { code?: unknown }).code)}`
  try {
    await ledger.open()
    for (const sessionId of SESSIONS) {
      try {
        const { result } = await ledger.transact(sessionId, (state) => answer(state, state))
        const texts: unknown[] = []
        for await (const entry of ledger.outbox(sessionId, 1, 99)) texts.push(entry)
        found.set(sessionId, JSON.stringify([plainState(result), texts]))
      } catch (error) {
        found.set(sessionId, codeOf(error))
      }
    }
    const listed: string[] = []
    for await (const { sessionId } of ledger.sessions('all')) listed.push(sessionId)
    const isComplete = SESSIONS.every((sessionId) => listed.includes(sessionId))
    found.set('listing', isComplete ? 'complete' : `refused: ${ledger.health().status}`)
  } catch (error) {
    for (const key of [...SESSIONS, 'listing']) found.set(key, codeOf(error))
  } finally {
    await ledger.close()
  }
  return found
}

const REFUSALS = ['refused: CORRUPT', 'refused: FILE_NEWER', 'refused: LEDGER_FAILED', 'refused: unhealthy']

function expectTruth(found: Map<string, string>, truth: Map<string, string>, what: string): number {
  let refusals = 0
  for (const [key, value] of found) {
    if (value === truth.get(key)) continue
    expect(REFUSALS, `${what} made ${key} answer ${value}`).toContain(value)
    refusals += 1
  }
  return refusals
}

function restore(directory: string, path: string, pristine: string): void {
  for (const name of readdirSync(directory)) {
    if (name.startsWith('ledger.db')) rmSync(join(directory, name))
  }
  copyFileSync(`${pristine}-holder`, `${path}-holder`)
}

/** A ledger at rest: closed, or left by a process that ended while sessions were behind their outbox. */
async function prepare(
  ending: 'closed' | 'left',
): Promise<{ directory: string; path: string; pristine: string; truth: Map<string, string> }> {
  const directory = fastDirectory()
  const path = join(directory, 'ledger.db')
  const pristine = join(directory, 'pristine.db')
  const ledgers = new AbandonedLedgers()
  const ledger = await ledgers.open(pristine)
  await fill(ledger)
  await (ending === 'closed' ? ledger.close() : ledgers.abandon(ledger))
  await insideFile(pristine, (db) => {
    // All of it in the file itself, whatever the driver does about the log.
    db.exec('PRAGMA journal_mode = DELETE')
    expect(readBehind(db)).toBe(ending === 'closed' ? 0 : 3)
  })
  copyFileSync(pristine, path)
  copyFileSync(`${pristine}-holder`, `${path}-holder`)
  const truth = await readAll(path)
  expect([...truth.values()].filter((value) => value.startsWith('refused'))).toEqual([])
  return { directory, path, pristine, truth }
}

/** How many rows of the outbox their sessions do not know of. */
function readBehind(db: SqlDatabase): unknown {
  const sql = 'SELECT count(*) AS behind FROM outbox JOIN sessions ON sessions.id = session'
  return db.prepare(`${sql} WHERE outbox.generation > sessions.generation`).get()?.['behind']
}

test.each(['closed', 'left'] as const)(
  'whichever byte of a %s file is flipped: the right answer or a refusal, never a wrong record, never silence',
  async (ending) => {
    const { directory, path, pristine, truth } = await prepare(ending)
    const bytes = readFileSync(pristine)
    let tried = 0
    let refused = 0
    for (let at = 0; at < bytes.length; at += 1) {
      // Empty space is mostly empty; what is written is what matters.
      const isChosen = isThorough || (bytes[at] === 0 ? at % 211 === 0 : at % 13 === 0)
      if (!isChosen) continue
      restore(directory, path, pristine)
      const damaged = Buffer.from(bytes)
      damaged[at] = bytes[at]! ^ (1 << (at % 8))
      writeFileSync(path, damaged)
      refused += expectTruth(await readAll(path), truth, `a flip of byte ${at}`)
      tried += 1
    }
    process.stdout.write(
      `flipped ${tried} of ${bytes.length} bytes of a ${ending} file: ${refused} answers refused, none wrong\n`,
    )
    expect(refused).toBeGreaterThan(0)
  },
  1_800_000,
)

test('wherever the file is cut off: a refusal, or all of it if only empty space was lost; nothing starts empty', async () => {
  const { directory, path, pristine, truth } = await prepare('closed')
  const bytes = readFileSync(pristine)
  let tried = 0
  let refused = 0
  for (let length = 0; length < bytes.length; length += isThorough ? 1 : 397) {
    restore(directory, path, pristine)
    writeFileSync(path, bytes.subarray(0, length))
    if (expectTruth(await readAll(path), truth, `a cut at byte ${length}`) > 0) refused += 1
    tried += 1
  }
  process.stdout.write(`cut the file at ${tried} of ${bytes.length} places: ${refused} refused, the rest complete\n`)
  expect(refused).toBeGreaterThan(tried * 0.8)
}, 1_800_000)

test('a damaged ledger is kept aside with its log, reported with its new name, and the next open starts anew', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await fill(ledger)
  await ledger.close()
  const bytes = readFileSync(path)
  bytes.fill(0x5a, 4096, 4096 + 200)
  writeFileSync(path, bytes)
  const now = Date.parse('2026-02-03T04:05:06Z')
  const keptAs = `${path}.corrupt-2026-02-03T04-05-06-000Z`
  await expect(sqliteLedger({ path, clock: { now: () => now } }).open()).rejects.toMatchObject({
    code: 'CORRUPT',
    message: expect.stringContaining(keptAs) as string,
    details: { path, keptAs },
  })
  expect(readFileSync(keptAs).subarray(4096).equals(bytes.subarray(4096))).toBe(true)
  expect(existsSync(path)).toBe(false)
  const next = sqliteLedger({ path })
  await next.open()
  expect((await next.transact('alpha', (state) => answer(state, state.generation))).result).toBe(0)
  await next.close()
})

test('as long as a damaged ledger lies aside, each open of the one in its place says so', async () => {
  const directory = temporaryDirectory()
  const path = join(directory, 'ledger.db')
  const open = async (): Promise<readonly unknown[]> => {
    const logger = recordingLogger()
    const ledger = sqliteLedger({ path, logger })
    await ledger.open()
    await ledger.close()
    return logger.lines.filter(({ level }) => level === 'warn').map(({ fields, message }) => ({ ...fields, message }))
  }
  expect(await open()).toEqual([])
  const kept = ['', '-holder'].map((ending) => `${path}.corrupt-2026-02-03T04-05-06-000Z${ending}`)
  for (const name of [...kept, join(directory, 'ledger.db.backup'), join(directory, 'other.db.corrupt-x')])
    writeFileSync(name, '')
  const message = expect.stringMatching(/kept aside.*restore a backup, or remove/) as string
  expect(await open()).toEqual([{ path, kept, message }])
  expect(await open()).toEqual([{ path, kept, message }])
  for (const name of kept) rmSync(name)
  expect(await open()).toEqual([])
})

test('L8: a file that is found damaged when it is opened anew is not replaced by an empty one behind the callers’ backs', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const logger = recordingLogger()
  let isFailing = false
  const ledger = new SqliteLedger({ path, logger }, (at) => {
    const host = new LocalHost({ path, allowNetworkFileSystem: false, at })
    return new WatchedHost(host, [], (call) => (isFailing && call === 'apply' ? 'before' : undefined))
  })
  await ledger.open()
  await fill(ledger)
  isFailing = true
  await expect(fill(ledger)).rejects.toMatchObject({ code: 'LEDGER_FAILED' })
  isFailing = false
  await turnsOfTheLoop()
  await insideFile(path, (db) => db.exec('PRAGMA user_version = 0'))
  for (let tries = 0; tries < 3; tries += 1) {
    await expect(fill(ledger)).rejects.toMatchObject({ code: 'CORRUPT' })
    await expect(ledger.stats()).rejects.toMatchObject({ code: 'CORRUPT' })
    expect(ledger.health()).toMatchObject({ status: 'unhealthy' })
  }
  expect(logger.text()).toContain('nothing more is recorded in it')
  expect(existsSync(path)).toBe(false)
  // Whoever opens it by name knows.
  await ledger.open()
  expect(ledger.health()).toEqual({ status: 'ok' })
  await ledger.close()
})

test('one damaged session does not keep the others from being listed; it is reported', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await fill(ledger)
  await ledger.close()
  const bytes = readFileSync(path)
  // The owner of one session, inside its row.
  const at = bytes.indexOf('agent-1')
  bytes[at + 6] = '7'.charCodeAt(0)
  const second = bytes.indexOf('agent-1', at)
  if (second > 0) bytes[second + 6] = '7'.charCodeAt(0)
  writeFileSync(path, bytes)
  const logger = recordingLogger()
  const damaged = sqliteLedger({ path, logger })
  await damaged.open()
  const listed: string[] = []
  for await (const { sessionId } of damaged.sessions('unfinished')) listed.push(sessionId)
  expect(listed).toEqual(['alpha', 'gamma'])
  expect(damaged.health()).toMatchObject({
    status: 'unhealthy',
    reason: expect.stringContaining('damaged record') as string,
  })
  expect(logger.text()).toContain('damaged record')
  await expect(damaged.transact('beta', (state) => answer(state, 1))).rejects.toMatchObject({ code: 'CORRUPT' })
  await damaged.close()
})

test('a damaged session is reported by whoever finds it, and is the trouble of its own callers alone', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await fill(ledger)
  await ledger.transact('beta', (state) => retractTurns(state, 4))
  await fill(ledger)
  await ledger.close()
  // Not even what it was written as.
  await insideFile(path, (db) => db.exec("UPDATE sessions SET tail_gaps = '[[4,4}' WHERE tail_gaps IS NOT NULL"))
  const logger = recordingLogger()
  const damaged = sqliteLedger({ path, logger })
  await damaged.open()
  const read = (sessionId: string): Promise<unknown> => damaged.transact(sessionId, (state) => answer(state, 1))
  const outcomes = await Promise.allSettled(SESSIONS.map(read))
  expect(outcomes).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'CORRUPT' } },
    { status: 'fulfilled' },
  ])
  expect(damaged.health()).toMatchObject({ status: 'unhealthy' })
  expect(logger.text()).toContain('damaged record')
  await damaged.close()
})

test('text that is damaged is reported when it is read', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const ledger = sqliteLedger({ path })
  await ledger.open()
  await fill(ledger)
  await ledger.close()
  await insideFile(path, (db) => db.exec("UPDATE outbox SET messages = '[]' WHERE id = 1"))
  const logger = recordingLogger()
  const damaged = sqliteLedger({ path, logger })
  await damaged.open()
  const texts: unknown[] = []
  const read = async (): Promise<void> => {
    for await (const entry of damaged.outbox('alpha', 1, 99)) texts.push(entry)
  }
  await expect(read()).rejects.toMatchObject({ code: 'CORRUPT' })
  expect(damaged.health()).toMatchObject({ status: 'unhealthy' })
  expect(logger.text()).toContain('damaged record')
  await damaged.close()
})

test('damage that is found only when text is wiped costs one batch; then it is the trouble of that session alone', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  let db: SqlDatabase | undefined
  let store: Store | undefined
  const ledger = new SqliteLedger({ path, logger: recordingLogger() }, (at): StoreHost => {
    const end = async (): Promise<void> => {
      const open = db
      db = store = undefined
      if (open !== undefined) await abandonConnection(open)
    }
    return {
      open: async () => {
        db = await openConnection({ path, allowNetworkFileSystem: false, at })
        store = new Store(db)
      },
      call: (name, ...args) => (store?.[name] as (...values: unknown[]) => never).apply(store, args),
      abandon: end,
      close: end,
    }
  })
  onTestFinished(() => ledger.close())
  await ledger.open()
  await fill(ledger)
  // Under the eyes of the cache, as a disk does it.
  db?.exec("UPDATE outbox SET completed_at = 7 WHERE id = (SELECT tail_head FROM sessions WHERE session_id = 'gamma')")
  const retract = (): Promise<unknown> => ledger.transact('gamma', (state) => retractTurns(state, 5))
  const mark = (): Promise<unknown> =>
    ledger.transact('alpha', (state) =>
      recordTurn(state, { owner: 'agent-0', at: 1, turnId: 'the next', messages: '["text"]' }),
    )
  await Promise.all([retract, mark].map((call) => expect(call()).rejects.toMatchObject({ code: 'LEDGER_FAILED' })))
  for (let tries = 0; tries < 3; tries += 1) {
    const outcomes = await Promise.allSettled([retract(), mark()])
    expect(outcomes).toMatchObject([
      { status: 'rejected', reason: { code: 'CORRUPT' } },
      { status: 'fulfilled', value: { result: 4 } },
    ])
  }
})

/** The log of a process that was killed: what it had committed is in there and nowhere else. */
function leaveLog(directory: string): void {
  const script = `
    import { sqliteLedger } from ${JSON.stringify(new URL('../../src/ledger/sqlite/index.ts', import.meta.url).href)}
    import { recordTurn } from ${JSON.stringify(new URL('../../src/core/index.ts', import.meta.url).href)}
    const ledger = sqliteLedger({ path: process.argv[1] })
    await ledger.open()
    for (let index = 1; index <= 6; index += 1) {
      const turn = { owner: 'agent', at: index, turnId: undefined, messages: JSON.stringify(['text ' + index]) }
      await ledger.transact('s', (state) => recordTurn(state, turn))
    }
    process.kill(process.pid, 'SIGKILL')`
  const child = spawnSync(process.execPath, [
    '--import',
    'tsx',
    '--input-type=module',
    '-e',
    script,
    join(directory, 'pristine.db'),
  ])
  expect(child.signal, child.stderr.toString()).toBe('SIGKILL')
}

test('whichever byte of a left-over log is flipped: a refusal, or a prefix that lacks at most the last two batches', async () => {
  const directory = fastDirectory()
  const path = join(directory, 'ledger.db')
  const pristine = join(directory, 'pristine.db')
  leaveLog(directory)
  const log = readFileSync(`${pristine}-wal`)
  let refused = 0
  let tried = 0
  for (let at = 0; at < log.length; at += isThorough ? 1 : 149) {
    restore(directory, path, pristine)
    copyFileSync(pristine, path)
    const damaged = Buffer.from(log)
    damaged[at] = log[at]! ^ (1 << (at % 8))
    writeFileSync(`${path}-wal`, damaged)
    const ledger = sqliteLedger({ path })
    tried += 1
    try {
      await ledger.open()
    } catch (error) {
      expect(error).toMatchObject({ code: 'CORRUPT' })
      refused += 1
      continue
    }
    const { result } = await ledger.transact('s', (state) => answer(state, state.generation))
    expect(result, `a flip of byte ${at} of the log`).toBeGreaterThanOrEqual(4)
    const texts: string[] = []
    for await (const { messages } of ledger.outbox('s', 1, 99)) texts.push(messages!)
    expect(texts).toEqual(Array.from({ length: result }, (_, index) => `["text ${index + 1}"]`))
    await ledger.close()
  }
  process.stdout.write(
    `flipped ${tried} of ${log.length} bytes of the log: ${refused} refused, the rest kept a prefix\n`,
  )
  expect(refused).toBeGreaterThan(tried / 2)
}, 1_800_000)

test('a log that ends in the middle of its last transaction is an ordinary crash', async () => {
  const directory = fastDirectory()
  leaveLog(directory)
  const log = readFileSync(join(directory, 'pristine.db-wal'))
  writeFileSync(join(directory, 'torn.db-wal'), log.subarray(0, log.length - 100))
  expect(await findWalDamage(join(directory, 'torn.db'))).toBeUndefined()
  expect(await findWalDamage(join(directory, 'absent.db'))).toBeUndefined()
})
