import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HolographicProvider } from '../src/providers/holographic/index.js'
import { VectorSpace } from '../src/providers/holographic/vectors.js'
import { measureContradictions, measureStore, seeded, type Quality } from '../tests/holographic/stores.js'
import type { BenchRow } from './row.js'

const STORES = 24
const PAIRS = 1_000
/** TIDEMARK_BENCH_FACTS=10000 for a quick look. */
const FACTS = Number(process.env['TIDEMARK_BENCH_FACTS'] ?? 100_000)
const QUESTIONS = 101

export async function benchHolographic(): Promise<BenchRow[]> {
  return [...(await quality()), ...(await contradictions()), ...(await growth())]
}

async function quality(): Promise<BenchRow[]> {
  const space = new VectorSpace(1024)
  const measured: Awaited<ReturnType<typeof measureStore>>[] = []
  for (let seed = 1; seed <= STORES; seed++) measured.push(await measureStore(seeded(seed), space))
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length
  return (['probe', 'related', 'reason', 'search'] as const).flatMap((kind: keyof Quality) => {
    const of = (whose: 'reference' | 'formula' | 'answers'): number => mean(measured.map((store) => store[whose][kind]))
    const row = (name: string, value: number, bar?: number): BenchRow => ({
      name: `holographic ${kind}, ${name}`,
      value,
      unit: 'AUC',
      ...(bar === undefined ? {} : { bar: `>= ${bar}`, ok: value >= bar }),
    })
    return [
      row('reference formula', of('reference')),
      row('our formula', of('formula'), 0.99),
      row('our answers', of('answers'), 0.99),
    ]
  })
}

async function contradictions(): Promise<BenchRow[]> {
  const { reference, ours } = await measureContradictions(seeded(99), new VectorSpace(1024), PAIRS)
  return [
    { name: 'holographic contradict, recall, reference', value: reference.recall, unit: 'share' },
    {
      name: 'holographic contradict, recall, ours',
      value: ours.recall,
      unit: 'share',
      bar: '>= 0.9',
      ok: ours.recall >= 0.9,
    },
    { name: 'holographic contradict, false alarms, reference', value: reference.falseAlarms, unit: 'share' },
    {
      name: 'holographic contradict, false alarms, ours',
      value: ours.falseAlarms,
      unit: 'share',
      bar: '<= 0.05',
      ok: ours.falseAlarms <= 0.05,
    },
  ]
}

const statement = (n: number): string =>
  `Person${n % 2_000} Smith${n % 7} ordered item ${n} from Shop${n % 300} in colour ${n % 12}`

/**
 * The store is filled in segments, as it is in life. Then its last thousand facts and the first thousand of a new store are
 * added in turns of fifty, so that whatever else the machine does falls on both.
 */
async function growth(): Promise<BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
  const thousand = 1_000
  const turn = 50
  let next = 0
  const memory = await HolographicProvider.open({
    path: join(folder, 'full.db'),
    extract: () => Array.from({ length: Math.min(thousand, FACTS - thousand - next) }, () => statement(next++)),
  })
  const fresh = await HolographicProvider.open({ path: join(folder, 'fresh.db') })
  try {
    for (let segment = 0; next < FACTS - thousand; segment++) await commit(memory, segment)
    let [first, last] = [0, 0]
    for (let added = 0; added < thousand; added += turn) {
      first += await timeOf(async () => {
        for (let i = added; i < added + turn; i++) await fresh.add(statement(i))
      })
      last += await timeOf(async () => {
        for (let i = 0; i < turn; i++) await memory.add(statement(next++))
      })
    }
    const ratio = last / first
    const search = await medianOf((n) => memory.search(`which item ${n * 97} did Person${n} order?`))
    const common = await medianOf(() => memory.search('ordered item in colour'))
    const probe = await medianOf((n) => memory.probe(`Person${n} Smith${n % 7}`))
    const busy = await medianOf((n) => memory.probe(`Shop${n}`))
    const reason = await medianOf((n) => memory.reason([`Person${n} Smith${n % 7}`, `Shop${n}`]))
    const timed = (name: string, value: number, bar = true): BenchRow => ({
      name: `holographic ${name}, ${FACTS} facts, median`,
      value,
      unit: 'ms',
      ...(bar ? { bar: '<= 20', ok: value <= 20 } : {}),
    })
    return [
      { name: 'holographic add, first 1,000 facts', value: first, unit: 'ms' },
      { name: `holographic add, last 1,000 of ${FACTS} facts`, value: last, unit: 'ms' },
      { name: 'holographic add, last / first', value: ratio, unit: 'ratio', bar: '<= 1.5', ok: ratio <= 1.5 },
      timed('search, one rare word', search),
      timed('search, common words only', common),
      timed('probe, a person', probe),
      timed('probe, a shop with hundreds of facts', busy),
      timed('reason, two entities', reason, false),
    ]
  } finally {
    await memory.close()
    await fresh.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function timeOf(work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

async function commit(memory: HolographicProvider, n: number): Promise<void> {
  await memory.agent('bench').commitMemorySession({
    sessionId: 'bench',
    from: n + 1,
    to: n + 1,
    attempt: 1,
    reason: 'manual',
    idempotencyKey: `segment-${n}`,
    signal: new AbortController().signal,
    async *turns() {
      yield { sessionId: 'bench', generation: n + 1, messages: [], completedAt: 0 }
    },
  })
}

async function medianOf(ask: (n: number) => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let n = 1; n <= QUESTIONS; n++) {
    const started = performance.now()
    await ask(n)
    times.push(performance.now() - started)
  }
  return times.sort((a, b) => a - b)[Math.floor(QUESTIONS / 2)]!
}
