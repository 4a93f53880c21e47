export interface RetryPolicy {
  /** How often a segment is offered before it is parked. */
  readonly attempts: number
  readonly minDelayMs: number
  readonly maxDelayMs: number
}

/**
 * Exponential backoff with jitter: the delay after the n-th attempt lies in the upper half of `minDelayMs · 2^(n-1)`,
 * capped, so that sessions which failed together do not come back together.
 */
export function retryDelay(
  attempts: number,
  policy: Pick<RetryPolicy, 'minDelayMs' | 'maxDelayMs'>,
  chance: number,
): number {
  const full = Math.min(policy.maxDelayMs, policy.minDelayMs * 2 ** Math.min(attempts - 1, 50))
  return Math.round(full * (0.5 + chance / 2))
}
