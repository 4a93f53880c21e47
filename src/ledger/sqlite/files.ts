import { constants } from 'node:fs'
import { copyFile, mkdir, open, readdir, readFile, rename, stat, statfs, unlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { TidemarkError } from '../../base/errors.js'

/** File systems whose locks or syncs cannot be relied upon, by the magic number of `statfs`. */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x65735546, 'FUSE'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
])

/**
 * Makes the directory and an empty file that only this user can read. An existing file is not opened: closing any
 * descriptor of it would release the lock that another handle of this process holds. True if it is still empty.
 */
export async function preparePrivateFile(path: string, allowNetworkFileSystem: boolean): Promise<boolean> {
  const directory = dirname(path)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  if (!allowNetworkFileSystem) await refuseNetworkFileSystem(path, directory)
  try {
    const handle = await open(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600)
    await handle.close()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return (await stat(path)).size === 0
}

/** `type` may come signed. */
export function nameNetworkFileSystem(type: number): string | undefined {
  return NETWORK_FILE_SYSTEMS.get(type >>> 0)
}

async function refuseNetworkFileSystem(path: string, directory: string): Promise<void> {
  const { type } = await statfs(directory)
  const name = nameNetworkFileSystem(type)
  if (name === undefined) return
  throw new TidemarkError(
    'FILE_SYSTEM_REFUSED',
    `The ledger ${path} would lie on a network file system (${name}), where locks and syncs cannot be relied upon. ` +
      'Use a local disk, or set allowNetworkFileSystem if you know that this one keeps its promises.',
    { details: { path, fileSystem: name } },
  )
}

/** Who has the ledger open. It stands beside the ledger, because a second process cannot read a locked database. */
export interface Holder {
  readonly version: 1
  readonly pid: number
  readonly host: string
  /** ISO time. */
  readonly since: string
  /** The ledger this file belongs to: tells an emptied ledger from a new one. */
  readonly ledgerId: string
}

function holderPath(path: string): string {
  return `${path}-holder`
}

export async function writeHolder(path: string, ledgerId: string, at: number): Promise<void> {
  const since = new Date(at).toISOString()
  const holder: Holder = { version: 1, pid: process.pid, host: hostname(), since, ledgerId }
  const temporary = `${holderPath(path)}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify(holder)}\n`, { mode: 0o600 })
  await rename(temporary, holderPath(path))
}

export async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(holderPath(path), 'utf8')) as Holder
  } catch (error) {
    // It only helps to find the other process: without it the answer is the same, with less to say.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function lockedBy(path: string, holder: Holder | undefined): TidemarkError {
  const who =
    holder === undefined
      ? 'another process (it left no note of who it is)'
      : `process ${holder.pid} on ${holder.host} since ${holder.since}`
  return new TidemarkError(
    'LOCKED',
    `The ledger ${path} is open in ${who}. One process at a time can use it: stop the other one, or use another path.`,
    { details: { path, pid: holder?.pid, host: holder?.host, since: holder?.since } },
  )
}

const KEPT = '.corrupt-'

/**
 * A damaged ledger is kept in two steps. Its log is copied while the handle is open, because closing a handle removes
 * the log; the rest is moved when nobody is at it any more.
 */
export async function keepLog(path: string, at: number): Promise<string> {
  const keptAs = `${path}${KEPT}${new Date(at).toISOString().replaceAll(/[:.]/g, '-')}`
  await unlessMissing(copyFile(`${path}-wal`, `${keptAs}-wal`))
  return keptAs
}

export async function keepRest(path: string, keptAs: string): Promise<void> {
  await unlessMissing(rename(`${path}-holder`, `${keptAs}-holder`))
  await unlessMissing(rename(path, keptAs))
  await unlessMissing(unlink(`${path}-wal`))
}

/** The files of damaged ledgers that were kept aside, oldest first. */
export async function findKept(path: string): Promise<string[]> {
  const directory = dirname(path)
  const names = await readdir(directory)
  return names
    .filter((name) => name.startsWith(`${basename(path)}${KEPT}`))
    .toSorted()
    .map((name) => join(directory, name))
}

async function unlessMissing(work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
