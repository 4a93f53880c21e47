import type { StoreCalls, StoreHost } from '../../src/ledger/sqlite/host.js'

interface Call {
  readonly run: () => unknown
  readonly resolve: (result: never) => void
  readonly reject: (error: unknown) => void
}

/**
 * A host that answers as a thread of its own does: later, in order, and never once it was abandoned, whether the call was
 * done or not. It needs no thread, so that thousands of them cost nothing.
 */
export class DelayedHost implements StoreHost {
  readonly #inner: StoreHost
  readonly #open = new Set<Call>()
  #line = Promise.resolve()
  #isGone = false

  constructor(inner: StoreHost) {
    this.#inner = inner
  }

  open(): Promise<void> {
    return this.#inner.open()
  }

  call<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): Promise<ReturnType<StoreCalls[Name]>> {
    return new Promise((resolve, reject) => {
      if (this.#isGone) {
        reject(ended())
        return
      }
      const call: Call = { run: () => this.#inner.call(name, ...args), resolve, reject }
      this.#open.add(call)
      this.#line = this.#line.then(() => this.#serve(call))
    })
  }

  async #serve(call: Call): Promise<void> {
    await nextTurn()
    if (!this.#open.has(call)) return
    let answer: () => void
    try {
      const result = call.run() as never
      answer = () => call.resolve(result)
    } catch (error) {
      answer = () => call.reject(error)
    }
    await nextTurn()
    if (this.#open.delete(call)) answer()
  }

  async abandon(): Promise<void> {
    this.#isGone = true
    await nextTurn()
    for (const call of this.#open) call.reject(ended())
    this.#open.clear()
    await this.#inner.abandon()
  }

  async close(): Promise<void> {
    await this.#line
    await this.#inner.close()
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function ended(): Error {
  return new Error('the thread has ended')
}
