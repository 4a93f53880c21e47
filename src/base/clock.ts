/** Time is asked for, never reached for, so that a test can hold it still (`manualClock` in `tidemark/testing`). */
export interface Clock {
  /** Epoch milliseconds. */
  now(): number
  /**
   * Calls back once after `delayMs`; the returned function cancels. A timer that somebody awaits keeps the process
   * alive (`keepAlive: true`); one that only waits for a better moment does not.
   */
  setTimer(callback: () => void, delayMs: number, options?: { readonly keepAlive?: boolean }): () => void
}

/** setTimeout fires at once beyond this delay. */
const LONGEST_DELAY_MS = 2 ** 31 - 1

export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  setTimer(callback: () => void, delayMs: number, options?: { readonly keepAlive?: boolean }) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), LONGEST_DELAY_MS))
    if (options?.keepAlive !== true) timer.unref()
    return () => clearTimeout(timer)
  },
})
