import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type MemoryAgent, MemoryLifecycle } from 'tidemark'
import { rates } from './measure.js'
import type { BenchRow } from './row.js'

const MARKS = 200_000
const SESSIONS = 100_000
const MILLION = 1_000_000

const agent: MemoryAgent = { agentId: 'bench', provider: 'bench', commitMemorySession: () => undefined }

/** Marks, commits, drain and memory of the coordinator over the memory ledger. */
export async function benchCore(): Promise<BenchRow[]> {
  return [...(await marks()), ...(await commits()), ...(await drains()), await bytesPerDirtySession()]
}

/** What a caller would write without tidemark: a counter in a Map behind an async function. */
function bareCounter(): (sessionId: string) => Promise<number> {
  const counts = new Map<string, number>()
  return async (sessionId) => {
    const next = (counts.get(sessionId) ?? 0) + 1
    counts.set(sessionId, next)
    return next
  }
}

async function marks(): Promise<BenchRow[]> {
  const keys = Array.from({ length: SESSIONS }, (_, index) => `session-${index}`)
  const options = { agent }
  const seen = await rates({
    async bareOne() {
      const counter = bareCounter()
      for (let mark = 0; mark < MARKS; mark += 1) await counter('session')
      return MARKS
    },
    async markOne() {
      const lifecycle = await MemoryLifecycle.open()
      for (let mark = 0; mark < MARKS; mark += 1) await lifecycle.markTurnCompleted('session', options)
      await lifecycle.close()
      return MARKS
    },
    async bareMany() {
      const counter = bareCounter()
      for (const key of keys) await counter(key)
      for (const key of keys) await counter(key)
      return 2 * SESSIONS
    },
    async markMany() {
      const lifecycle = await MemoryLifecycle.open()
      for (const key of keys) await lifecycle.markTurnCompleted(key, options)
      for (const key of keys) await lifecycle.markTurnCompleted(key, options)
      await lifecycle.close()
      return 2 * SESSIONS
    },
  })
  const one = (seen.markOne / seen.bareOne) * 100
  const many = (seen.markMany / seen.bareMany) * 100
  return [
    {
      name: 'marks awaited one by one, one session',
      value: seen.markOne,
      unit: 'marks/s',
      bar: '3 M/s on an idle machine',
    },
    {
      name: '… of a bare Map counter',
      value: one,
      unit: '%',
      limit: `${Math.round(seen.bareOne)} /s`,
      bar: '≥ 20 %',
      ok: one >= 20,
    },
    { name: 'marks over 100,000 sessions', value: seen.markMany, unit: 'marks/s', bar: '1.2 M/s on an idle machine' },
    {
      name: '… of that counter over the same keys',
      value: many,
      unit: '%',
      limit: `${Math.round(seen.bareMany)} /s`,
      bar: '≥ 12 %',
      ok: many >= 12,
    },
  ]
}

async function commits(): Promise<BenchRow[]> {
  const count = 50_000
  const seen = await rates({
    async commits() {
      const lifecycle = await MemoryLifecycle.open()
      for (let index = 0; index < count; index += 1) {
        await lifecycle.markTurnCompleted('session', { agent })
        await lifecycle.commit('session')
      }
      await lifecycle.close()
      return count
    },
  })
  return [{ name: 'mark + commit of one turn, one by one', value: seen.commits, unit: 'commits/s' }]
}

/** In a process of its own: the garbage of the marks above would be collected in the middle of it. */
async function drains(): Promise<BenchRow[]> {
  const child = fileURLToPath(new URL('./drain.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--expose-gc', '--import', 'tsx', child])
  const value = Number(stdout)
  return [
    {
      ...{ name: 'drain of 10,000 sessions × 20 ms, 256 at once', value, unit: '% of ideal' },
      ...{ limit: 'the same timers, 256 at once, nothing else', bar: '≥ 95 %', ok: value >= 95 },
    },
  ]
}

async function bytesPerDirtySession(): Promise<BenchRow> {
  if (globalThis.gc === undefined) throw new Error('Run the benchmarks with --expose-gc.')
  const lifecycle = await MemoryLifecycle.open()
  const collect = globalThis.gc
  collect()
  const before = process.memoryUsage().heapUsed
  for (let index = 0; index < MILLION; index += 1) await lifecycle.markTurnCompleted(`session-${index}`, { agent })
  collect()
  const value = (process.memoryUsage().heapUsed - before) / MILLION
  await lifecycle.close()
  return {
    name: 'heap per dirty session, one million',
    value,
    unit: 'bytes',
    bar: '≤ 320, the id included',
    ok: value <= 320,
  }
}
