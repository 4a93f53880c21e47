import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

test('examples/quick-start commits both turns in one call', () => {
  const output = execFileSync(process.execPath, ['--import', 'tsx', 'examples/quick-start/main.ts'], {
    cwd: root,
    encoding: 'utf8',
  })
  expect(output).toContain('learning turn 2')
  expect(output).toContain('alice: 1–2 committed')
  expect(output.match(/committed$/gm)).toHaveLength(1)
})
