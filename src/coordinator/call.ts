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
  /** Made when somebody looks at the signal: most providers are done before they would. */
  #controller: AbortController | undefined
  #abandon: () => void = () => undefined
  #startGrace: () => void = () => undefined

  constructor(
    run: (call: ProviderCall<T>) => T | Promise<T>,
    limits: { readonly clock: Clock; readonly timeoutMs: number; readonly graceMs: number },
  ) {
    const { clock, timeoutMs, graceMs } = limits
    this.late = settle(() => run(this))
    this.result = new Promise((resolve) => {
      const onTimeout = (): void => {
        this.abort('timeout')
        this.#startGrace()
      }
      let cancelTimer = clock.setTimer(onTimeout, timeoutMs, { keepAlive: true })
      this.#startGrace = () => {
        cancelTimer()
        cancelTimer = clock.setTimer(this.#abandon, graceMs, { keepAlive: true })
      }
      this.#abandon = () => {
        cancelTimer()
        this.isAbandoned = true
        resolve('abandoned')
      }
      void this.late.then((result) => {
        cancelTimer()
        this.#startGrace = () => undefined
        resolve(result)
      })
    })
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.abortedBy !== undefined) this.#controller.abort(abortError(this.abortedBy))
    }
    return this.#controller.signal
  }

  /**
   * Nobody waits for a call once we are closed: it is abandoned at once, whatever it was aborted for before. What a
   * needless call does is of no interest: it holds up its session for one grace period, not for the rest of its time.
   */
  abort(cause: AbortCause): void {
    if (cause === 'closed') this.#abandon()
    else if (cause === 'needless' && this.abortedBy !== 'timeout') this.#startGrace()
    if (cause !== 'closed' && this.abortedBy !== undefined) return
    this.abortedBy = cause
    this.#controller?.abort(abortError(cause))
  }
}

function abortError(cause: AbortCause): DOMException {
  return new DOMException(`The memory commit was aborted: ${cause}.`, 'AbortError')
}

/** Whatever the function does (throw at once, reject, return, resolve) becomes a value. */
async function settle<T>(run: () => T | Promise<T>): Promise<CallResult<T>> {
  try {
    return { kind: 'returned', value: await run() }
  } catch (error) {
    return { kind: 'threw', error }
  }
}
