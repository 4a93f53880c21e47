import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { TidemarkError } from '../base/errors.js'

/** The part of a file handle that a log uses: a port, so that a test can make the disk fail. */
export interface LogFile {
  write(bytes: Buffer, from: number, length: number, position: number): Promise<{ bytesWritten: number }>
  /** Writes without leaving the event loop and gives how many bytes were taken. */
  writeNow?(bytes: Buffer, position: number): number
  datasync(): Promise<void>
  truncate(size: number): Promise<void>
  close(): Promise<void>
}

export type OpenLogFile = (path: string, flags: 'r+' | 'wx') => Promise<LogFile>

const openDescriptor = promisify(fs.open)
const syncDescriptor = promisify(fs.fdatasync)
const truncateDescriptor = promisify(fs.ftruncate)
const closeDescriptor = promisify(fs.close)

/** On a bare descriptor: a `FileHandle` costs a fifth more for each small write. */
export const openLogFile: OpenLogFile = async (path, flags) => {
  const descriptor = await openDescriptor(path, flags, 0o600)
  return {
    write: (bytes, from, length, position) =>
      new Promise((resolve, reject) => {
        fs.write(descriptor, bytes, from, length, position, (error, bytesWritten) => {
          if (error === null) resolve({ bytesWritten })
          else reject(error)
        })
      }),
    writeNow: (bytes, position) => fs.writeSync(descriptor, bytes, 0, bytes.length, position),
    datasync: () => syncDescriptor(descriptor),
    truncate: (size) => truncateDescriptor(descriptor, size),
    close: () => closeDescriptor(descriptor),
  }
}

/** No id maps to a name that starts like this. */
const TEMPORARY = '=tmp-'

const SMALL_WRITE = 16 * 1024

/**
 * A write may take less than it was given (a disk that fills up): go on until all is written or nothing moves.
 *
 * A small write is made in place: it only copies into the page cache, which takes two microseconds, where the trip
 * through the thread pool takes twenty to fifty. Large writes and every sync stay off the event loop.
 */
export async function writeAll(file: LogFile, bytes: Buffer, position: number): Promise<void> {
  let done = bytes.length <= SMALL_WRITE ? (file.writeNow?.(bytes, position) ?? 0) : 0
  while (done < bytes.length) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done)
    if (bytesWritten <= 0) {
      throw new TidemarkError('WRITE_FAILED', `Expected to write ${bytes.length} bytes, the disk took ${done}.`)
    }
    done += bytesWritten
  }
}

/** Makes the names in a directory durable. Windows knows no such step. */
export async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/**
 * Puts a whole file in place in one step: a reader sees the old file or the new one. With `durable` its bytes are on
 * stable storage before it has the name; making the name itself durable (`syncDirectory`) is left to the caller, who
 * then knows that the new file is in place already.
 */
export async function putFile(
  path: string,
  bytes: Buffer,
  options: { readonly durable: boolean; readonly openFile?: OpenLogFile },
): Promise<void> {
  const temporary = join(dirname(path), TEMPORARY + randomBytes(9).toString('hex'))
  try {
    const file = await (options.openFile ?? openLogFile)(temporary, 'wx')
    try {
      await writeAll(file, bytes, 0)
      if (options.durable) await file.datasync()
    } finally {
      await file.close()
    }
    await renameOver(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** Creates a directory for this user only, and makes its own name durable. */
export async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 })
  if (first !== undefined) await syncDirectory(dirname(path))
}

/** Removes what a crash left between writing a temporary file and renaming it. */
export async function sweepTemporaryFiles(directory: string): Promise<number> {
  const left = (await readdir(directory)).filter((name) => name.startsWith(TEMPORARY))
  await Promise.all(left.map((name) => rm(join(directory, name), { force: true })))
  return left.length
}

export async function fileExists(path: string): Promise<boolean> {
  return (await ifExists(stat(path))) !== undefined
}

/** What the work gives, or `undefined` if the file it is about is not there. */
export async function ifExists<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}

/** On Windows a rename over a file that a virus scanner or a reader has open fails for a moment. */
async function renameOver(from: string, to: string): Promise<void> {
  const patience = process.platform === 'win32' ? 10 : 1
  for (let attempt = 1; ; attempt++) {
    try {
      await rename(from, to)
      return
    } catch (error) {
      const passing = error instanceof Error && 'code' in error && (error.code === 'EPERM' || error.code === 'EBUSY')
      if (!passing || attempt >= patience) throw error
      await new Promise((resolve) => setTimeout(resolve, 10 * attempt))
    }
  }
}
