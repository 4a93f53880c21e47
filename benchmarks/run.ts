import { mkdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { benchCore } from './core.js'
import { benchGateway } from './gateway.js'
import { benchHolographic } from './holographic.js'
import type { BenchRow } from './row.js'
import { benchSessions } from './sessions.js'
import { benchSqlite } from './sqlite.js'

/** `npm run bench` runs all of them, `npm run bench -- core` one. Prints a table and writes benchmarks/results/latest.json. */
const areas: Record<string, () => Promise<BenchRow[]>> = {
  core: benchCore,
  sqlite: benchSqlite,
  sessions: benchSessions,
  holographic: benchHolographic,
  gateway: benchGateway,
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !(name in areas))
if (unknown.length > 0)
  throw new Error(`No such benchmark: ${unknown.join(', ')}. There is: ${Object.keys(areas).join(', ')}.`)

const report: { area: string; rows: BenchRow[] }[] = []
for (const [area, run] of Object.entries(areas)) {
  if (wanted.length > 0 && !wanted.includes(area)) continue
  console.log(`\n${area}`)
  const rows = await run()
  report.push({ area, rows })
  for (const row of rows) console.log(line(row))
}
const directory = new URL('./results/', import.meta.url)
await mkdir(directory, { recursive: true })
const machine = { node: process.version, cpus: cpus().length, model: cpus()[0]?.model ?? 'unknown' }
await writeFile(new URL('latest.json', directory), `${JSON.stringify({ machine, report }, null, 2)}\n`)
const missed = report.flatMap(({ rows }) => rows).filter(({ ok }) => ok === false)
console.log(missed.length === 0 ? '\nevery bar was reached' : `\n${missed.length} bars were missed`)

function line({ name, value, unit, limit, bar, ok }: BenchRow): string {
  const number = value >= 1000 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(4)
  const verdict = ok === undefined ? '' : ok ? '✓' : '✗ missed'
  return [
    name.padEnd(60),
    `${number} ${unit}`.padStart(22),
    (bar ?? '').padEnd(28),
    verdict,
    limit === undefined ? '' : `(beside: ${limit})`,
  ]
    .join('  ')
    .trimEnd()
}
