import type { Changes } from '../../src/ledger/sqlite/changes.js'
import type { StoreCalls, StoreHost } from '../../src/ledger/sqlite/host.js'

/** What goes wrong with a call: the disk fails before it was done, or after, when nobody knows. */
export type Fault = (call: keyof StoreCalls) => 'before' | 'after' | undefined

/** A host that notes what is asked of the file and what really reached it, and fails when it is told to. */
export class WatchedHost implements StoreHost {
  readonly #inner: StoreHost
  readonly #calls: (keyof StoreCalls)[]
  readonly #fault: Fault
  readonly #onDurable: (changes: Changes) => void

  constructor(
    inner: StoreHost,
    calls: (keyof StoreCalls)[],
    fault: Fault,
    onDurable: (changes: Changes) => void = () => undefined,
  ) {
    this.#inner = inner
    this.#calls = calls
    this.#fault = fault
    this.#onDurable = onDurable
  }

  open(): Promise<void> {
    return this.#inner.open()
  }

  call<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): ReturnType<StoreCalls[Name]> | Promise<ReturnType<StoreCalls[Name]>> {
    this.#calls.push(name)
    const fault = this.#fault(name)
    if (fault === 'before') throw new Error('disk I/O error')
    const conclude = (result: ReturnType<StoreCalls[Name]>): ReturnType<StoreCalls[Name]> => {
      if (name === 'apply') this.#onDurable(args[0] as Changes)
      if (fault === 'after') throw new Error('disk I/O error')
      return result
    }
    const result = this.#inner.call(name, ...args)
    return result instanceof Promise ? result.then(conclude) : conclude(result)
  }

  abandon(): Promise<void> {
    return this.#inner.abandon()
  }

  close(): Promise<void> {
    return this.#inner.close()
  }
}
