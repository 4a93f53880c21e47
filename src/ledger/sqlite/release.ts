import { isBuiltin } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { SqlDatabase } from '../../base/sqlite.js'
import { attempt } from './failure.js'

/**
 * The driver for Node 20 does not finalise its statements when it closes: the handle lives on, with its lock, until
 * they are collected. `node:sqlite` does finalise them.
 */
const LINGERS = !isBuiltin('node:sqlite')

/** Releases the lock and closes a healthy handle. */
export async function closeConnection(db: SqlDatabase): Promise<void> {
  const failure = attempt(() => {
    if (LINGERS) {
      db.exec('PRAGMA journal_mode = DELETE')
      db.exec('PRAGMA locking_mode = NORMAL')
      db.exec('SELECT 1 FROM sqlite_schema')
    }
    db.close()
  })
  if (failure !== undefined) await abandonConnection(db)
}

/** Lets go of a handle that cannot be trusted any more; nobody may keep a statement of it. */
export async function abandonConnection(db: SqlDatabase): Promise<void> {
  attempt(() => db.exec('ROLLBACK'))
  attempt(() => db.close())
  await collectClosed()
}

/**
 * Where closing is not enough, the collector is run, as test runners do it: this happens after a failure only, and the
 * lock has to come free. False if there is nothing that could linger.
 */
export async function collectClosed(): Promise<boolean> {
  if (!LINGERS) return false
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  // Before: whoever still has a statement on its stack returns. After: the finalisers run.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  await new Promise((resolve) => setImmediate(resolve))
  return true
}
