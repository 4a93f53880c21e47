import { resolve } from 'node:path'
import type { Ledger } from '../ledger.js'
import { LocalHost } from './host.js'
import { SqliteLedger } from './ledger.js'
import { checkOptions, type SqliteLedgerOptions } from './options.js'
import { WorkerHost } from './worker-host.js'

export type { SqliteLedgerOptions } from './options.js'

/**
 * A ledger in one file: what it acknowledged is there after a crash, a kill or a power cut. One process at a time can
 * use the file. Nothing is opened until `MemoryLifecycle.open`.
 */
export function sqliteLedger(options: SqliteLedgerOptions): Ledger {
  checkOptions(options)
  const path = resolve(options.path)
  const allowNetworkFileSystem = options.allowNetworkFileSystem ?? false
  const Host = options.worker === true ? WorkerHost : LocalHost
  return new SqliteLedger(options, (at) => new Host({ path, allowNetworkFileSystem, at }))
}
