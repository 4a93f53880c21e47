import { type Logger, silentLogger } from '../base/logger.js'
import type { MemoryAgent } from '../coordinator/agent.js'
import { describeError } from '../coordinator/describe-error.js'
import type { MemoryLifecycle } from '../coordinator/lifecycle.js'

export interface EvictionHookOptions {
  /** Told of evictions that failed. @default silent */
  readonly logger?: Logger
}

export interface EvictionHook {
  /** What `dispose` of an lru-cache is called with. Never throws, never waits. */
  (agent: MemoryAgent, sessionId: string): void
  /** Evictions under way. */
  readonly pending: number
  /** Resolves when no eviction is under way, with the number of those that have failed so far. */
  settled(): Promise<{ readonly failed: number }>
}

/**
 * For people who have their own lru-cache: `new LRUCache({ max, dispose: evictionHook(lifecycle) })`. An agent that
 * leaves the cache, for whatever reason, is evicted: its session is flushed, then it is closed. The cache does not wait
 * for `dispose`, so the hook keeps count.
 */
export function evictionHook(
  lifecycle: Pick<MemoryLifecycle, 'evict'>,
  options: EvictionHookOptions = {},
): EvictionHook {
  const { logger = silentLogger } = options
  const running = new Set<Promise<void>>()
  let failed = 0
  const dispose = (agent: MemoryAgent, sessionId: string): void => {
    // By name: the agent that takes its place in the cache may be there already.
    const run = lifecycle
      .evict(sessionId, { agent })
      .then(
        () => undefined,
        (error: unknown) => {
          failed += 1
          logger.error({ sessionId, err: describeError(error) }, 'an agent that left the cache could not be evicted')
        },
      )
      .finally(() => running.delete(run))
    running.add(run)
  }
  const settled = async (): Promise<{ readonly failed: number }> => {
    while (running.size > 0) await Promise.all(running)
    return { failed }
  }
  return Object.defineProperty(Object.assign(dispose, { settled, pending: 0 }), 'pending', { get: () => running.size })
}
