import type { Clock } from '../base/clock.js'

/** The one value for "the signal came first". */
export const ABORTED: unique symbol = Symbol('aborted')

/** Waits for `promise` or for one of the signals, whichever comes first, and leaves no listener behind. */
export function waitOrAbort<T>(
  promise: Promise<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T | typeof ABORTED> {
  const given = signals.filter((signal) => signal !== undefined)
  if (given.length === 0) return promise
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      for (const signal of given) signal.removeEventListener('abort', abort)
    }
    const abort = (): void => {
      stop()
      resolve(ABORTED)
    }
    promise.then(
      (value) => {
        stop()
        resolve(value)
      },
      (error: unknown) => {
        stop()
        reject(error)
      },
    )
    if (given.some((signal) => signal.aborted)) abort()
    else for (const signal of given) signal.addEventListener('abort', abort, { once: true })
  })
}

/** Waits for a time, a signal, or whoever calls the function that `onAsleep` is given. */
export function sleepUntil(
  clock: Clock,
  at: number,
  signal: AbortSignal,
  onAsleep?: (wake: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.setTimer(end, Math.max(0, at - clock.now()), { keepAlive: true })
    function end(): void {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    onAsleep?.(end)
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}
