import type { Clock } from '../base/clock.js'

/** Why a provider's signal was aborted. */
export type AbortCause = 'timeout' | 'shutdown' | 'needless' | 'closed'

export type CallResult<T> =
  { readonly kind: 'returned'; readonly value: T } | { readonly kind: 'threw'; readonly error: unknown }

/**
 * One call into somebody else's code, under a time limit (C13). When the limit passes its signal is aborted; if it
 * still does not return within the grace, it is abandoned: `result` resolves without it, and `late` tells if it ever ends.
 */
export class ProviderCall<T> {
  readonly result: Promise<CallResult<T> | 'abandoned'>
  readonly late: Promise<CallResult<T>>
  isAbandoned = false
  abortedBy: AbortCause | undefined
  readonly #controller = new AbortController()

  constructor(
    run: (call: ProviderCall<T>) => T | Promise<T>,
    limits: { readonly clock: Clock; readonly timeoutMs: number; readonly graceMs: number },
  ) {
    const { clock, timeoutMs, graceMs } = limits
    let cancelTimer = (): void => undefined
    const abandoned = new Promise<'abandoned'>((resolve) => {
      const abandon = (): void => {
        this.isAbandoned = true
        resolve('abandoned')
      }
      const expire = (): void => {
        this.abort('timeout')
        cancelTimer = clock.setTimer(abandon, graceMs, { keepAlive: true })
      }
      cancelTimer = clock.setTimer(expire, timeoutMs, { keepAlive: true })
    })
    this.late = settle(() => run(this)).finally(() => cancelTimer())
    this.result = Promise.race([this.late, abandoned])
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(cause: AbortCause): void {
    if (this.abortedBy !== undefined) return
    this.abortedBy = cause
    this.#controller.abort(new DOMException(`The memory commit was aborted: ${cause}.`, 'AbortError'))
  }
}

/** Whatever the function does (throw at once, reject, return, resolve) becomes a value. */
async function settle<T>(run: () => T | Promise<T>): Promise<CallResult<T>> {
  try {
    return { kind: 'returned', value: await run() }
  } catch (error) {
    return { kind: 'threw', error }
  }
}
