import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Watch a process die and the next one finish its work:
 *
 *   npx tsx examples/crash-and-recover/main.ts
 *
 * Three lives of one small chat server follow each other. The first is killed right after a turn was acknowledged, the
 * second in the middle of a commit, the third finds what both left and brings it to an end.
 */
const directory = mkdtempSync(join(tmpdir(), 'tidemark-example-'))
const life = fileURLToPath(new URL('./life.ts', import.meta.url))

async function live(number: number, dieAt: string): Promise<void> {
  console.log(`\n— life ${number} ${dieAt === 'never' ? '' : `(will be killed: ${dieAt})`}`)
  const child = spawn(process.execPath, ['--import', 'tsx', life, directory, dieAt], { stdio: 'inherit' })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  console.log(signal === null ? `— ended with ${String(code)}` : `— killed with ${signal}`)
}

await live(1, 'after-acknowledging')
await live(2, 'inside-the-commit')
await live(3, 'never')

console.log('\nWhat the provider has learned, each turn once:')
const lines = readFileSync(join(directory, 'learned.jsonl'), 'utf8').trimEnd().split('\n')
const learned = new Map(lines.map((line) => [(JSON.parse(line) as { key: string }).key, line]))
for (const line of learned.values()) console.log(`  ${line}`)
rmSync(directory, { recursive: true, force: true })
