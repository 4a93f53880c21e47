import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MemoryLifecycle } from '../../src/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { seededRandom } from '../../src/testing/ledger-model.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { Books } from './books.js'
import { bookkeeper, LineFile } from './children/provider.js'

/** TIDEMARK_TEST_ALL=1 kills many times more. */
const factor = process.env['TIDEMARK_TEST_ALL'] === '1' ? 8 : 1

/** Started hundreds of times: bundled once, so that a start costs no compilation. Inside the project, to find its packages. */
let bundle = ''
beforeAll(async () => {
  bundle = mkdtempSync(fileURLToPath(new URL('../../node_modules/.tidemark-crash-', import.meta.url)))
  await build({
    entry: {
      gateway: fileURLToPath(new URL('./children/gateway.ts', import.meta.url)),
      'sqlite-worker': fileURLToPath(new URL('../../src/ledger/sqlite/worker.ts', import.meta.url)),
    },
    ...{ outDir: bundle, format: 'esm', target: 'node20.19', platform: 'node', splitting: true, silent: true },
    ...{ config: false, dts: false, removeNodeProtocol: false, outExtension: () => ({ js: '.js' }) },
  })
})
afterAll(() => rmSync(bundle, { recursive: true, force: true }))

function start(directory: string, moment: string, seed: number, worker: boolean): ChildProcess {
  const args = [join(bundle, 'gateway.js'), directory, moment, String(seed), String(worker)]
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function checkAfterDeath(directory: string, books: Books): Promise<void> {
  books.read()
  const ledger = sqliteLedger({ path: join(directory, 'ledger.db') })
  await ledger.open()
  await books.check(ledger)
  await ledger.close()
}

/** Opens what the dead left, with a provider that works, until nothing is owed to anybody. */
async function finish(directory: string, books: Books): Promise<void> {
  const lines = new LineFile(join(directory, 'books'))
  const agents = ['one', 'two'].map((id) => bookkeeper(id, lines, { at: () => undefined, random: () => 1 }))
  const ledger = sqliteLedger({ path: join(directory, 'ledger.db') })
  const lifecycle = await MemoryLifecycle.open({
    ledger,
    revive: ({ agentId = 'one' }) => agents.find((agent) => agent.agentId === agentId),
    retry: { attempts: 1_000_000, minDelayMs: 2, maxDelayMs: 10 },
  })
  const isDone = async (): Promise<boolean> => {
    const { dirtySessions, unsettled, parked } = await ledger.stats()
    return dirtySessions + unsettled + parked === 0
  }
  for (let rounds = 0; !(await isDone()); rounds += 1) {
    expect(rounds, 'the work of the dead processes was not finished').toBeLessThan(2_000)
    await lifecycle.drain({ deadlineMs: 10_000 })
    // Receipts are asked about in their own time, and one that is lost makes its range dirty again.
    if (!(await isDone())) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  lines.close()
  books.read()
  await books.check(ledger)
  await lifecycle.close()
}

const MOMENTS = ['before-call', 'inside', 'after', 'before-record', 'after-record', 'after-mark'] as const

test.each(MOMENTS)(
  'R5: killed again and again at the moment "%s", no turn is lost, none is learned twice under two keys',
  async (moment) => {
    const directory = temporaryDirectory()
    const books = new Books(directory)
    const kills = 6 * factor
    for (let round = 0; round < kills; round += 1) {
      const child = start(directory, moment, round, round % 4 === 3)
      const [, signal] = (await once(child, 'exit')) as [number | null, string | null]
      expect(signal).toBe('SIGKILL')
      await checkAfterDeath(directory, books)
    }
    await finish(directory, books)
    report(`at "${moment}"`, kills, books)
    expect(books.recovered).toBeGreaterThan(0)
  },
)

test('R5: killed at hundreds of random moments, no acknowledged turn is lost and everything is committed in the end', async () => {
  await Promise.all([1, 2].map((seed) => killAtRandom(seed, 100 * factor)))
})

async function killAtRandom(seed: number, kills: number): Promise<void> {
  const directory = temporaryDirectory()
  const random = seededRandom(seed)
  const books = new Books(directory)
  for (let round = 0; round < kills; round += 1) {
    const child = start(directory, 'none', seed * 1_000 + round, round % 4 === 3)
    // Any moment will do, also one before it is ready: how long that is in milliseconds does not matter.
    if (round % 5 !== 0) await Promise.race([once(child.stdout!, 'data'), once(child, 'exit')])
    const timer = setTimeout(() => child.kill('SIGKILL'), random() * 40)
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    clearTimeout(timer)
    expect(child.signalCode, 'the process ended by itself').toBe('SIGKILL')
    if (round % 5 === 0 || round === kills - 1) await checkAfterDeath(directory, books)
  }
  await finish(directory, books)
  report('at random moments', kills, books)
  expect(books.marks).toBeGreaterThan(kills)
}

function report(what: string, kills: number, { marks, calls, repeats, recovered }: Books): void {
  process.stdout.write(
    `killed ${kills} times ${what}: ${marks} turns acknowledged, ${calls} provider calls, ` +
      `${repeats} repeats under the same key, ${recovered} sessions recovered, 0 turns lost\n`,
  )
}
