import type { Clock } from '../base/clock.js'
import { systemClock } from '../base/clock.js'
import { type Logger, silentLogger } from '../base/logger.js'
import type { MemoryAgent } from '../coordinator/agent.js'
import type { MemoryLifecycle } from '../coordinator/lifecycle.js'
import { count, duration } from '../coordinator/options.js'

/** What the pool needs of a `MemoryLifecycle`. */
export type PoolLifecycle = Pick<MemoryLifecycle, 'evict' | 'hold' | 'on' | 'registerAgent'>

/** Builds the agent of a session. The signal is aborted when the pool is closed and its time is up. */
export type CreateAgent<Agent extends MemoryAgent> = (
  sessionId: string,
  context: { readonly signal: AbortSignal },
) => Agent | Promise<Agent>

export interface AgentPoolOptions<Agent extends MemoryAgent> {
  readonly lifecycle: PoolLifecycle
  readonly create: CreateAgent<Agent>
  /** How many agents are kept. Agents that serve a turn are never evicted, so there may be more for a while. */
  readonly max: number
  /** Evict an agent that served nobody for so long. @default never */
  readonly idleMs?: number
  /** @default silent */
  readonly logger?: Logger
  /** @default the system's clock */
  readonly clock?: Clock
}

export interface PoolSettings<Agent extends MemoryAgent> {
  readonly lifecycle: PoolLifecycle
  readonly create: CreateAgent<Agent>
  readonly max: number
  readonly idleMs: number | undefined
  readonly logger: Logger
  readonly clock: Clock
}

const KNOWN = ['lifecycle', 'create', 'max', 'idleMs', 'logger', 'clock']

export function resolvePoolOptions<Agent extends MemoryAgent>(options: AgentPoolOptions<Agent>): PoolSettings<Agent> {
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) throw new TypeError(`AgentPool has no option '${name}'. It knows: ${KNOWN.join(', ')}.`)
  }
  const { lifecycle, create, idleMs } = options
  if (typeof (lifecycle as Partial<PoolLifecycle> | undefined)?.evict !== 'function') {
    throw new TypeError('AgentPool needs the option lifecycle: a MemoryLifecycle.')
  }
  if (typeof create !== 'function') {
    throw new TypeError('AgentPool needs the option create: a function (sessionId, { signal }) that gives an agent.')
  }
  return Object.freeze({
    lifecycle,
    create,
    max: count('max', options.max, NaN),
    idleMs: idleMs === undefined ? undefined : duration('idleMs', idleMs, 0),
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock,
  })
}
