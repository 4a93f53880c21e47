import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { onTestFinished, type TestContext } from 'vitest'
import { temporaryDirectory } from './temporary.js'

const run = promisify(execFile)

/** A disk of a few megabytes. Needs root; skipped with the reason otherwise, except with TIDEMARK_CI=1. */
export async function smallDisk(context: TestContext, megabytes: number): Promise<string> {
  const directory = join(await temporaryDirectory(), 'disk')
  await mkdir(directory)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory])
  } catch (error) {
    if (process.env['TIDEMARK_CI'] === '1') throw error
    return context.skip(`a small disk needs root and tmpfs: ${String(error)}`)
  }
  // Lazily, because the SQLite for Node 20 keeps its descriptor until garbage collection.
  onTestFinished(async () => {
    await run('umount', ['-l', directory])
  })
  return directory
}
