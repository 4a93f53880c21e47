import { readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { TidemarkError } from './errors.js'
import { loadSqlite, type SqlDatabase } from './sqlite.js'

export interface ProcessLock {
  release(): Promise<void>
}

/**
 * A lock between processes that the kernel frees when its holder dies, also by SIGKILL: a small SQLite file, opened
 * exclusively. Nobody may open that file except through SQLite, because closing any descriptor of it would drop the
 * lock; so who holds it stands in a file beside it.
 */
export async function acquireProcessLock(path: string, what: string): Promise<ProcessLock> {
  const { DatabaseSync } = await loadSqlite()
  const holderPath = `${path}.holder.json`
  let database: SqlDatabase | undefined
  try {
    database = new DatabaseSync(path, { timeout: 0 })
    database.exec('PRAGMA locking_mode=EXCLUSIVE')
    database.exec('BEGIN IMMEDIATE; PRAGMA user_version=1; COMMIT')
  } catch (error) {
    database?.close()
    if (isDamaged(error)) {
      throw new TidemarkError(
        'CORRUPT',
        `The lock file ${path} is damaged. It holds nothing but the lock: make sure that no other process uses the directory, and delete it.`,
        { cause: error, details: { path } },
      )
    }
    if (!isBusy(error)) throw error
    const holder = await readHolder(holderPath)
    throw new TidemarkError(
      'LOCKED',
      `${what} is in use by ${holder}. Only one process may write it: stop the other one, or use another directory.`,
      { cause: error, details: { path, holder } },
    )
  }
  const held = database
  // The name only helps people: the lock is held whether or not the disk has room for it.
  const holder = JSON.stringify({ version: 1, pid: process.pid, host: hostname() })
  await writeFile(holderPath, holder, { mode: 0o600 }).catch(() => undefined)
  let released: Promise<void> | undefined
  return { release: () => (released ??= releaseDatabase(held, holderPath)) }
}

async function releaseDatabase(database: SqlDatabase, holderPath: string): Promise<void> {
  // While the lock is still held: a successor writes this file anew. A name that stays behind misleads nobody for long.
  await rm(holderPath, { force: true }).catch(() => undefined)
  try {
    // The SQLite for Node 20 keeps its lock after close() until garbage collection; these three free it now.
    database.exec('PRAGMA journal_mode=DELETE')
    database.exec('PRAGMA locking_mode=NORMAL')
    database.prepare('SELECT count(*) FROM sqlite_master').get()
  } finally {
    database.close()
  }
}

async function readHolder(path: string): Promise<string> {
  try {
    const { pid, host } = JSON.parse(await readFile(path, 'utf8')) as { pid?: unknown; host?: unknown }
    return `process ${String(pid)} on ${String(host)}`
  } catch {
    return 'another process that has not written its name yet'
  }
}

function isDamaged(error: unknown): boolean {
  return error instanceof Error && /not a database|malformed/i.test(error.message)
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message)
}
