import { LocalHost } from '../../src/ledger/sqlite/host.js'
import type { Changes } from '../../src/ledger/sqlite/changes.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'
import { type Lag, WriteBehind } from '../../src/ledger/sqlite/write-behind.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { type Fault, WatchedHost } from './watched-host.js'

/** Ledgers whose file is let go of as a dying process does it: nothing more is written, least of all what is behind. */
export class AbandonedLedgers {
  readonly #lag: Lag | undefined
  readonly #fault: Fault
  readonly #open = new Map<Ledger, { readonly path: string; readonly host: () => LocalHost | undefined }>()
  /** Everything that reached the files. */
  readonly written: Changes[] = []

  constructor(lag?: Lag, fault: Fault = () => undefined) {
    this.#lag = lag
    this.#fault = fault
  }

  async open(path: string): Promise<Ledger> {
    let host: LocalHost | undefined
    const ledger = new SqliteLedger(
      { path },
      (at) => {
        host = new LocalHost({ path, allowNetworkFileSystem: false, at })
        return new WatchedHost(host, [], this.#fault, (changes) => this.written.push(changes))
      },
      new WriteBehind(this.#lag),
    )
    this.#open.set(ledger, { path, host: () => host })
    await ledger.open()
    return ledger
  }

  /** Gives the path of the file. */
  async abandon(ledger: Ledger): Promise<string> {
    const found = this.#open.get(ledger)
    if (found === undefined) throw new Error('not one of these ledgers')
    await found.host()?.abandon()
    return found.path
  }

  async reopen(ledger: Ledger): Promise<Ledger> {
    return this.open(await this.abandon(ledger))
  }
}
