import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const child = fileURLToPath(new URL('./heap-child.ts', import.meta.url))

test('B9: after a million sessions marked, committed and discarded the heap is back where it was', () => {
  const output = execFileSync(process.execPath, ['--expose-gc', '--import', 'tsx', child], { encoding: 'utf8' })
  const { sessions, grownBytes } = JSON.parse(output) as { sessions: number; grownBytes: number }
  console.log(`heap: ${sessions} sessions, grown by ${(grownBytes / 1024 / 1024).toFixed(2)} MB`)
  expect(sessions).toBe(1_000_000)
  expect(grownBytes).toBeLessThan(16 * 1024 * 1024)
})
