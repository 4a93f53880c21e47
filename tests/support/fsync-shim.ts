import { execFileSync } from 'node:child_process'
import { closeSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'

export interface FsyncShim {
  /** The environment of the process under test. */
  readonly env: Record<string, string>
  readonly controlPath: string
}

/** Compiles the shim into `directory`; syncs and reads of files whose path contains `match` can then be made to fail. */
export function buildFsyncShim(directory: string, match: string): FsyncShim {
  const library = join(directory, 'fsync-shim.so')
  const source = fileURLToPath(new URL('fsync-shim.c', import.meta.url))
  execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'])
  const controlPath = join(directory, 'fsync-control')
  writeFileSync(controlPath, Buffer.alloc(16))
  return {
    controlPath,
    env: { LD_PRELOAD: library, FSYNC_SHIM_CONTROL: controlPath, FSYNC_SHIM_MATCH: match },
  }
}

/** Tells the shim to let the n-th sync from now on fail (0: none), and to make each take longer. */
export function setFsyncFailure(controlPath: string, failAt: number, delayUs = 0): void {
  const numbers = Buffer.alloc(8)
  numbers.writeInt32LE(failAt, 0)
  numbers.writeInt32LE(delayUs, 4)
  const file = openSync(controlPath, 'r+')
  writeSync(file, numbers, 0, 8, 0)
  closeSync(file)
}

/** Tells the shim to let the n-th read from now on fail (0: none). */
export function setReadFailure(controlPath: string, failAt: number): void {
  const number = Buffer.alloc(4)
  number.writeInt32LE(failAt)
  const file = openSync(controlPath, 'r+')
  writeSync(file, number, 0, 4, 12)
  closeSync(file)
}

/** How many reads are left until one fails; 0 if it has. */
export function readsLeft(controlPath: string): number {
  const number = Buffer.alloc(4)
  const file = openSync(controlPath, 'r')
  readSync(file, number, 0, 4, 12)
  closeSync(file)
  return number.readInt32LE()
}
