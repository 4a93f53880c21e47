/** The steps of a shutdown, in their order. What is durable comes first, so that a short deadline loses the least. */
export const STEPS = [
  'checkpointers',
  'turns',
  'interrupt',
  'connections',
  'flush',
  'drain',
  'pool',
  'journal',
  'sessions',
  'lifecycle',
  'report',
] as const

export type StepName = (typeof STEPS)[number]

/**
 * By which part of the deadline a step has ended. A step that ends early leaves its time to those after it; one that
 * does not end is left behind, so each always has at least the distance to its predecessor.
 */
export const SHARES: Readonly<Record<StepName, number>> = Object.freeze({
  checkpointers: 0.1,
  turns: 0.4,
  interrupt: 0.45,
  connections: 0.5,
  flush: 0.6,
  drain: 0.9,
  pool: 0.94,
  journal: 0.95,
  sessions: 0.97,
  lifecycle: 0.99,
  report: 1,
})

/** Connections that carry no turn any more (keep-alive, an open event stream) get this part of the deadline to end. */
const LINGER = 0.05
/** The drain returns before its step is over, because its report says what is left. */
const DRAIN_MARGIN = 0.02

/** When the step must have ended, in epoch milliseconds. */
export function endOf(step: StepName, startedAt: number, deadlineMs: number, now: number): number {
  const end = startedAt + SHARES[step] * deadlineMs
  return step === 'connections' ? Math.min(end, now + LINGER * deadlineMs) : end
}

export function drainTime(endAt: number, deadlineMs: number, now: number): number {
  return Math.max(0, endAt - DRAIN_MARGIN * deadlineMs - now)
}
