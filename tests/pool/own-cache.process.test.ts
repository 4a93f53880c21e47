import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const EXAMPLE = fileURLToPath(new URL('../../examples/own-cache/main.ts', import.meta.url))

test('the example of somebody’s own cache runs, and hands everything over', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', EXAMPLE], { timeout: 60_000 })
  expect(stdout).toContain('learned 30 messages of 10 sessions; 30 agents closed')
})
