import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { SqlDatabase } from '../src/base/sqlite.js'
import { type MemoryAgent, MemoryLifecycle } from '../src/index.js'
import { sqliteLedger } from '../src/ledger/sqlite/index.js'
import { median, rates } from './measure.js'
import type { BenchRow } from './row.js'
import { BATCH, insertBatches, insertSingly, openRaw } from './sqlite/raw.js'
import { serve } from './sqlite/sockets.js'

const CALLERS = 1_000
const TURNS_EACH = 60
const SINGLE = 1_000
const agent: MemoryAgent = { agentId: 'bench', provider: 'bench', commitMemorySession: () => undefined }
const messages = [
  { role: 'user', content: 'x'.repeat(200) },
  { role: 'assistant', content: 'y'.repeat(300) },
]
const text = JSON.stringify(messages)

/** The durable ledger beside the least that SQLite, a server and a drain could cost on the same disk in the same run. */
export async function benchSqlite(): Promise<BenchRow[]> {
  const directory = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
  try {
    const raw = await openRaw(directory)
    const rows = [...(await callers(directory, raw)), ...(await single(directory, raw)), ...(await sockets(directory))]
    rows.push(await drain(directory), ...(await opening(directory)), ...(await loopDelay(directory)))
    raw.close()
    return rows
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

let files = 0

async function openLifecycle(directory: string, worker = false): Promise<MemoryLifecycle> {
  const path = join(directory, `ledger-${++files}.db`)
  return MemoryLifecycle.open({ ledger: sqliteLedger({ path, worker }), concurrency: CALLERS })
}

interface Load {
  readonly callers: number
  readonly turns: number
  readonly withText: boolean
  readonly commitEvery?: number
}

async function mark(lifecycle: MemoryLifecycle, load: Load): Promise<number> {
  const options = load.withText ? { agent, messages } : { agent }
  const converse = async (sessionId: string): Promise<void> => {
    for (let turn = 1; turn <= load.turns; turn += 1) {
      await lifecycle.markTurnCompleted(sessionId, options)
      if (load.commitEvery !== undefined && turn % load.commitEvery === 0) await lifecycle.commit(sessionId)
    }
  }
  await Promise.all(Array.from({ length: load.callers }, (_, index) => converse(`session-${index}`)))
  return load.callers * load.turns
}

/** A share of what it is measured beside. */
function share(name: string, value: number, limit: number, bar: number, beside: string): BenchRow {
  const percent = (value / limit) * 100
  const rate = `${Math.round(value).toLocaleString('en-US')}/s of ${Math.round(limit).toLocaleString('en-US')}/s`
  return { name, value: percent, unit: '%', limit: `${beside}, ${rate}`, bar: `at least ${bar} %`, ok: percent >= bar }
}

async function callers(directory: string, raw: SqlDatabase): Promise<BenchRow[]> {
  const lifecycles = {
    text: await openLifecycle(directory),
    bare: await openLifecycle(directory),
    commits: await openLifecycle(directory),
  }
  const load = { callers: CALLERS, turns: TURNS_EACH }
  const rows = CALLERS * TURNS_EACH
  const seen = await rates(
    {
      rawText: () => Promise.resolve(insertBatches(raw, rows, text)),
      text: () => mark(lifecycles.text, { ...load, withText: true }),
      rawBare: () => Promise.resolve(insertBatches(raw, rows, undefined)),
      bare: () => mark(lifecycles.bare, { ...load, withText: false }),
      commits: () => mark(lifecycles.commits, { ...load, withText: true, commitEvery: 10 }),
    },
    5,
  )
  for (const lifecycle of Object.values(lifecycles)) await lifecycle.close()
  const beside = `append-order inserts, ${BATCH} a transaction`
  return [
    share('1,000 callers mark with text', seen.text, seen.rawText, 25, beside),
    share('1,000 callers mark without text', seen.bare, seen.rawBare, 22, beside),
    share('1,000 callers, a commit every ten turns', seen.commits, seen.rawText, 14, beside),
  ]
}

async function single(directory: string, raw: SqlDatabase): Promise<BenchRow[]> {
  const local = await openLifecycle(directory)
  const worker = await openLifecycle(directory, true)
  const load = { callers: 1, turns: SINGLE, withText: true }
  // Until the log has its full size, each sync has a new length to record too: not what is asked here.
  insertSingly(raw, 5 * SINGLE, text)
  for (const lifecycle of [local, worker]) await mark(lifecycle, { ...load, turns: 3 * SINGLE })
  const seen = await rates(
    {
      raw: () => Promise.resolve(insertSingly(raw, SINGLE, text)),
      local: () => mark(local, load),
      worker: () => mark(worker, load),
    },
    9,
  )
  await local.close()
  await worker.close()
  const beside = 'raw single-row durable transactions'
  return [
    share('one caller', seen.local, seen.raw, 85, beside),
    share('one caller, ledger in a worker', seen.worker, seen.raw, 60, beside),
  ]
}

async function sockets(directory: string): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const count of [1_000, 50]) {
    const batches: number[] = []
    const shares: number[] = []
    const seen: number[] = []
    for (let round = 0; round < 5; round += 1) {
      const without = await serve(directory, 'none', count, 40_000)
      const served = await serve(directory, `sockets-${count}-${round}`, count, 40_000)
      seen.push(served.rate)
      shares.push(served.rate / without.rate)
      batches.push(served.meanBatch)
    }
    // Side by side, round by round: other work on the disk hits a ledger and spares a server without one.
    const limit = median(seen) / median(shares)
    const mean = median(batches)
    rows.push(share(`${count} sockets`, median(seen), limit, 45, 'the same server without a ledger'), {
      name: `${count} sockets: mean batch`,
      value: mean,
      unit: 'marks',
      bar: 'at least 20',
      ok: mean >= 20,
    })
  }
  return rows
}

async function drain(directory: string): Promise<BenchRow> {
  const SESSIONS = 1_600
  const CONCURRENCY = 32
  const LATENCY_MS = 20
  const slow: MemoryAgent = {
    agentId: 'slow',
    commitMemorySession: () => new Promise((resolve) => setTimeout(resolve, LATENCY_MS)),
  }
  const shares: number[] = []
  for (let round = 0; round < 3; round += 1) {
    const path = join(directory, `ledger-${++files}.db`)
    const lifecycle = await MemoryLifecycle.open({ ledger: sqliteLedger({ path }), concurrency: CONCURRENCY })
    const ids = Array.from({ length: SESSIONS }, (_, index) => `session-${index}`)
    await Promise.all(ids.map((id) => lifecycle.markTurnCompleted(id, { agent: slow, messages })))
    const start = performance.now()
    await lifecycle.drain({ deadlineMs: 60_000, concurrency: CONCURRENCY })
    shares.push(((SESSIONS / CONCURRENCY) * LATENCY_MS * 100) / (performance.now() - start))
    await lifecycle.close()
  }
  const value = median(shares)
  const limit = `${SESSIONS} sessions, ${LATENCY_MS} ms a call, ${CONCURRENCY} at once`
  return { name: 'drain, share of the ideal', value, unit: '%', limit, bar: 'at least 78 %', ok: value >= 78 }
}

async function opening(directory: string): Promise<BenchRow[]> {
  const SESSIONS = 100_000
  const path = join(directory, 'many.db')
  const before = await MemoryLifecycle.open({ ledger: sqliteLedger({ path }) })
  for (let first = 0; first < SESSIONS; first += 5_000) {
    const ids = Array.from({ length: 5_000 }, (_, index) => `session-${first + index}`)
    await Promise.all(ids.map((id) => before.markTurnCompleted(id, { agent, messages })))
  }
  await before.close()
  const seconds: number[] = []
  const listed: number[] = []
  for (let round = 0; round < 3; round += 1) {
    const ledger = sqliteLedger({ path })
    const start = performance.now()
    await ledger.open()
    seconds.push((performance.now() - start) / 1000)
    let sessions = 0
    for await (const { state } of ledger.sessions('unfinished')) sessions += state.generation > 0 ? 1 : 0
    if (sessions !== SESSIONS) throw new Error(`${sessions} sessions were found`)
    listed.push((performance.now() - start) / 1000)
    await ledger.close()
  }
  const value = median(seconds)
  return [
    { name: 'opening 100,000 dirty sessions', value, unit: 's', bar: 'under 0.8 s', ok: value < 0.8 },
    { name: 'opening and listing 100,000 dirty sessions', value: median(listed), unit: 's' },
  ]
}

/** How long the event loop is held up while a thousand callers mark, with the file on this thread and on its own. */
async function loopDelay(directory: string): Promise<BenchRow[]> {
  const rows: BenchRow[] = []
  for (const worker of [false, true]) {
    const lifecycle = await openLifecycle(directory, worker)
    const delay = monitorEventLoopDelay({ resolution: 1 })
    delay.enable()
    await mark(lifecycle, { callers: CALLERS, turns: TURNS_EACH, withText: true })
    delay.disable()
    await lifecycle.close()
    const name = `event-loop delay p99, 1,000 callers${worker ? ', ledger in a worker' : ''}`
    rows.push({ name, value: delay.percentile(99) / 1e6, unit: 'ms' })
  }
  return rows
}
