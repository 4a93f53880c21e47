import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase } from '../../base/sqlite.js'
import { type ConnectionOptions, openConnection } from './connection.js'
import { abandonConnection, closeConnection } from './release.js'
import { Store } from './store.js'

/** What can be asked of an open ledger file. */
export type StoreCalls = Pick<
  Store,
  'numbers' | 'apply' | 'load' | 'page' | 'outboxRows' | 'outboxPage' | 'stats' | 'tidy'
>

/** Where the open file lives: on this thread or on a worker's. Calls are answered one after the other, in order. */
export interface StoreHost {
  open(): Promise<void>
  /** On this thread the answer is there at once; a promise for it would only cost time. */
  call<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): ReturnType<StoreCalls[Name]> | Promise<ReturnType<StoreCalls[Name]>>
  /** Lets go of a file that failed: nothing more is written through it. */
  abandon(): Promise<void>
  close(): Promise<void>
}

/** The file on this thread: the fastest way, but the event loop waits for each sync. */
export class LocalHost implements StoreHost {
  readonly #options: ConnectionOptions
  #db: SqlDatabase | undefined
  #store: Store | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    this.#db = await openConnection(this.#options)
    this.#store = new Store(this.#db)
  }

  call<Name extends keyof StoreCalls>(name: Name, ...args: Parameters<StoreCalls[Name]>): ReturnType<StoreCalls[Name]> {
    const store = this.#store
    if (store === undefined) throw new Error('the ledger file is not open')
    const run = store[name] as (this: Store, ...values: Parameters<StoreCalls[Name]>) => ReturnType<StoreCalls[Name]>
    try {
      return run.apply(store, args)
    } catch (error) {
      // A transaction may be half done: whoever read on would see what was never promised.
      const isReading = name !== 'apply' && name !== 'tidy'
      if (!isReading || !(error instanceof TidemarkError)) this.#store = undefined
      throw error
    }
  }

  async abandon(): Promise<void> {
    const db = this.#take()
    if (db !== undefined) await abandonConnection(db)
  }

  async close(): Promise<void> {
    const db = this.#take()
    if (db !== undefined) await closeConnection(db)
  }

  /** Statements must not outlive the handle. */
  #take(): SqlDatabase | undefined {
    const db = this.#db
    this.#db = undefined
    this.#store = undefined
    return db
  }
}
