import { writeSync } from 'node:fs'
import { HolographicProvider } from '../../src/providers/holographic/index.js'
import { extractIn, segment, SEGMENT_OPTIONS } from './segments.js'

/**
 * The other process. `commit`: commits segment after segment and says so on standard output, until it is killed or
 * reaches `until`. `share`: adds facts of its own, facts that others add too, and segments that others commit too.
 */
const [mode, path = '', from = '0', until = '0'] = process.argv.slice(2)

/** Letters only: a word with digits in it would be taken for a name and become an entity. */
function runName(pid: number): string {
  return Array.from(String(pid), (digit) => 'abcdefghij'.charAt(Number(digit))).join('')
}

async function commit(): Promise<void> {
  const memory = await HolographicProvider.open({ path, ...SEGMENT_OPTIONS, extract: extractIn(runName(process.pid)) })
  const agent = memory.agent('s')
  for (let n = Number(from); n < Number(until); n++) {
    await agent.commitMemorySession(segment(n))
    // Synchronous: a line is out before the next commit begins.
    writeSync(1, `${n}\n`)
  }
  await memory.close()
}

async function share(): Promise<void> {
  const memory = await HolographicProvider.open({ path, ...SEGMENT_OPTIONS, extract: extractIn(runName(process.pid)) })
  const agent = memory.agent('s')
  for (let n = 0; n < Number(until); n++) {
    await memory.add(`Writer${from} wrote line ${n}`, { category: 'own' })
    await memory.add(`everybody wrote line ${n}`, { category: 'shared' })
    await agent.commitMemorySession(segment(n))
    const found = await memory.search(`Writer${from} line ${n}`)
    if (found[0]?.content !== `Writer${from} wrote line ${n}`) throw new Error(`line ${n} was not found`)
  }
  await memory.close()
}

await (mode === 'commit' ? commit() : share())
