import type { Clock } from '../base/clock.js'

export interface ManualClock extends Clock {
  /** Moves time on, firing every timer on the way in its order; between timers the event loop gets to run. */
  advance(ms: number): Promise<void>
  /** Timers that are set. */
  readonly pending: number
}

interface Timer {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/** A clock that stands still until it is told to move. */
export function manualClock(startAt = 1_700_000_000_000): ManualClock {
  const timers = new Set<Timer>()
  let now = startAt
  let order = 0
  const next = (until: number): Timer | undefined => {
    let first: Timer | undefined
    for (const timer of timers) {
      const isEarlier =
        first === undefined || timer.at < first.at || (timer.at === first.at && timer.order < first.order)
      if (timer.at <= until && isEarlier) first = timer
    }
    return first
  }
  return {
    now: () => now,
    setTimer(callback, delayMs) {
      const timer: Timer = { at: now + Math.max(0, delayMs), order: order++, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    async advance(ms) {
      const until = now + ms
      await settled()
      for (let timer = next(until); timer !== undefined; timer = next(until)) {
        timers.delete(timer)
        now = Math.max(now, timer.at)
        timer.callback()
        await settled()
      }
      now = until
    },
    get pending() {
      return timers.size
    },
  }
}

/** A durable ledger takes one turn of the event loop for each transaction; what a timer sets off takes several of them. */
const TURNS = 30

/** Lets everything that is ready run, I/O callbacks included. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}
