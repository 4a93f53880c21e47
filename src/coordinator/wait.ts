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
