#!/usr/bin/env node
/**
 * Runs a script under another Node, taken from the registry's `node` package and kept in node_modules/.node-<version>:
 *
 *   node scripts/with-node.js 24 node_modules/vitest/vitest.mjs run tests/ledger
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [version = '24', ...args] = process.argv.slice(2)
const root = fileURLToPath(new URL('..', import.meta.url))
const prefix = join(root, 'node_modules', `.node-${version}`)
const binary = join(prefix, 'node_modules', 'node', 'bin', 'node')
if (!existsSync(binary)) {
  mkdirSync(prefix, { recursive: true })
  execFileSync('npm', ['install', '--no-save', '--silent', '--prefix', prefix, `node@${version}`], { stdio: 'inherit' })
}
const { status, signal } = spawnSync(binary, args, { cwd: root, stdio: 'inherit' })
process.exit(status ?? (signal === null ? 1 : 128))
