import type { Clock } from '../../src/base/clock.js'

export interface ManualTime extends Clock {
  advance(ms: number): void
  readonly timers: number
}

/** Time that moves only when a test says so. */
export function manualTime(start = 1_700_000_000_000): ManualTime {
  let now = start
  const timers = new Set<{ at: number; callback: () => void }>()
  return {
    now: () => now,
    setTimer(callback, delayMs) {
      const timer = { at: now + delayMs, callback }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    advance(ms) {
      now += ms
      for (const timer of [...timers].sort((a, b) => a.at - b.at)) {
        if (timer.at > now || !timers.delete(timer)) continue
        timer.callback()
      }
    },
    get timers() {
      return timers.size
    },
  }
}
