import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/ledgers.js'
import { childPath } from './children/run-child.js'

const script = fileURLToPath(new URL('../../scripts/with-node.js', import.meta.url))
const OTHER = process.versions.node.startsWith('20.') ? '24' : '20'

interface Marked {
  readonly generation: number
  readonly texts: readonly string[]
  readonly node: string
}

function markWith(node: string | undefined, path: string, ending: 'close' | 'die'): Marked {
  const args = ['--import', 'tsx', childPath('one-mark.ts'), path, ending]
  const child = spawnSync(process.execPath, node === undefined ? args : [script, node, ...args], { encoding: 'utf8' })
  if (!child.stdout.startsWith('{')) throw new Error(child.stderr)
  return JSON.parse(child.stdout) as Marked
}

test(`the same file is written by this Node and by Node ${OTHER}, in turns, also after a kill`, (context) => {
  const other = spawnSync(process.execPath, [script, OTHER, '--version'], { encoding: 'utf8' })
  if (other.status !== 0) {
    if (process.env['TIDEMARK_CI'] === '1') throw new Error(`Node ${OTHER} could not be had:\n${other.stderr}`)
    return context.skip(`Node ${OTHER} could not be had from the registry`)
  }
  const path = join(temporaryDirectory(), 'ledger.db')
  const seen = [
    markWith(undefined, path, 'close'),
    markWith(OTHER, path, 'die'),
    markWith(undefined, path, 'die'),
    markWith(OTHER, path, 'close'),
    markWith(undefined, path, 'close'),
  ]
  expect(seen.map(({ generation }) => generation)).toEqual([1, 2, 3, 4, 5])
  expect(seen.at(-1)?.texts).toEqual(seen.map(({ node }) => JSON.stringify([`by Node ${node}`])))
  expect(new Set(seen.map(({ node }) => node)).size).toBe(2)
})
