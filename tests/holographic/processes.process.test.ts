import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'tsup'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openFile, temporaryPath, withDatabase } from './helpers.js'
import { extractIn, segment, SEGMENT_OPTIONS } from './segments.js'

/** How often a child is killed; TIDEMARK_KILLS=5000 is for a long run. */
const KILLS = Number(process.env['TIDEMARK_KILLS'] ?? 200)
const LANES = 2

// Inside node_modules, because the bundle must find the SQLite package from where it lies.
const folder = fileURLToPath(new URL(`../../node_modules/.cache/tidemark-holographic-${process.pid}`, import.meta.url))
const children = new Set<ChildProcess>()

beforeAll(async () => {
  // A bundle starts in a fraction of the time that a TypeScript loader needs, and this file starts hundreds.
  const entry = { child: fileURLToPath(new URL('child.ts', import.meta.url)) }
  await build({
    entry,
    outDir: folder,
    format: 'esm',
    outExtension: () => ({ js: '.mjs' }),
    config: false,
    silent: true,
    dts: false,
    removeNodeProtocol: false,
    target: 'node20.19',
  })
})

afterAll(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

function start(...args: (string | number)[]): ChildProcess {
  const child = spawn(process.execPath, [`${folder}/child.mjs`, ...args.map(String)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.add(child)
  child.once('exit', () => children.delete(child))
  return child
}

/** Runs a child to its end; its complaints become the failure. */
async function finish(child: ChildProcess): Promise<void> {
  let complaints = ''
  child.stderr?.on('data', (data: Buffer) => (complaints += data.toString()))
  const [code] = (await once(child, 'exit')) as [number | null]
  expect(`${String(code)} ${complaints}`).toBe('0 ')
}

/** Everything in the database that is not SQLite's own business, but for the name of the run that stored a segment. */
function dump(path: string): Promise<Record<string, unknown[]>> {
  return withDatabase(path, (db) => {
    const all = (sql: string) => db.prepare(sql).all()
    const other = "category <> 'attempt'"
    return {
      health: all('PRAGMA integrity_check'),
      facts: all(`SELECT fact_id, category, tags, trust_score, created_at, updated_at,
        iif(${other}, content, substr(content, 1, instr(content, ' in run '))) AS content,
        iif(${other}, hex(hrr_vector), '') AS vector FROM facts ORDER BY fact_id`),
      entities: all('SELECT * FROM entities ORDER BY entity_id'),
      links: all('SELECT * FROM fact_entities ORDER BY fact_id, entity_id'),
      index: all(
        `SELECT i.rowid, i.terms FROM tidemark_index AS i JOIN facts ON fact_id = i.rowid WHERE ${other} ORDER BY i.rowid`,
      ),
      banks: all(`SELECT bank_name, fact_count, iif(bank_name = 'cat:attempt', '', hex(vector)) AS vector
        FROM memory_banks ORDER BY bank_name`),
      commits: all('SELECT * FROM tidemark_commits ORDER BY idempotency_key'),
      stale: all('SELECT * FROM tidemark_stale'),
    }
  })
}

/** Kills a child after it has acknowledged `acknowledgements` more segments, a moment later; gives the last one. */
async function killAfter(
  child: ChildProcess,
  acknowledgements: number,
  turnsOfTheLoop: number,
): Promise<number | undefined> {
  let last: number | undefined
  let seen = 0
  let rest = ''
  let complaints = ''
  child.stderr?.on('data', (data: Buffer) => (complaints += data.toString()))
  const strike = (left: number): void => {
    if (left > 0) setImmediate(strike, left - 1)
    else child.kill('SIGKILL')
  }
  child.stdout?.on('data', (data: Buffer) => {
    const lines = (rest + data.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      last = Number(line)
      if (++seen === acknowledgements) strike(turnsOfTheLoop)
    }
  })
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null]
  expect({ code, signal, complaints }).toEqual({ code: null, signal: 'SIGKILL', complaints: '' })
  return last
}

describe('exactly once', () => {
  it(`better 6, R4: after ${KILLS} kills in the middle of commits the database equals that of an undisturbed run`, async () => {
    const lanes = Array.from({ length: LANES }, async (_, lane) => {
      const path = temporaryPath()
      let next = 0
      for (let kill = 0; kill < Math.ceil(KILLS / LANES); kill++) {
        // Different numbers each time, and the same in every run: one to four commits, up to 200 turns of the loop more.
        const last = await killAfter(start('commit', path, next, 1e9), 1 + (kill % 4), (kill * 37 + lane * 11) % 200)
        // The acknowledgement of the last segment may be lost with the coordinator: it is offered again.
        next = last ?? next
      }
      await finish(start('commit', path, next, next + 3))
      return { path, segments: next + 3 }
    })
    for (const { path, segments } of await Promise.all(lanes)) {
      const undisturbed = temporaryPath()
      const memory = await openFile(undisturbed, { ...SEGMENT_OPTIONS, extract: extractIn('undisturbed') })
      for (let n = 0; n < segments; n++) await memory.agent('s').commitMemorySession(segment(n))
      await memory.close()
      const expected = await dump(undisturbed)
      expect(expected['commits']).toHaveLength(segments)
      expect(segments).toBeGreaterThan(KILLS / LANES)
      expect(await dump(path)).toEqual(expected)
    }
  })
})

describe('several processes on one file', () => {
  it('better 8: open a new file at the same time, write to it at the same time, and lose nothing', async () => {
    const path = temporaryPath()
    const [writers, lines] = [4, 25]
    await Promise.all(Array.from({ length: writers }, (_, n) => finish(start('share', path, n, lines))))
    const { facts, commits, banks, health, stale } = await dump(path)
    const count = (category: string) =>
      facts!.filter((fact) => (fact as { category: string }).category === category).length
    expect(health).toEqual([{ integrity_check: 'ok' }])
    expect([count('own'), count('shared'), commits!.length, stale]).toEqual([writers * lines, lines, lines, []])
    const counted = (banks as { bank_name: string; fact_count: number }[]).map((bank) => [
      bank.bank_name.slice(4),
      bank.fact_count,
    ])
    expect(counted).toEqual(
      ['attempt', 'own', 'project', 'shared', 'user_pref'].map((category) => [category, count(category)]),
    )
  })
})
