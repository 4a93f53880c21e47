import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('examples/openviking runs without a server: accepted, failed, repaired, learned once, recalled', async () => {
  const example = fileURLToPath(new URL('../../examples/openviking/main.ts', import.meta.url))
  const { OPENVIKING_URL: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', example], { env, timeout: 60_000 })
  expect(stdout).toMatch(/accepted[\s\S]*failed[\s\S]*accepted[\s\S]*extracted/)
  expect(stdout).toContain('- I drink green tea in the morning.')
  expect(stdout).toMatch(/learned how often: \{ 'example-\d+:1': 1, 'example-\d+:2': 1 \}/)
})
