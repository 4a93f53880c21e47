import { type Clock, systemClock } from '../base/clock.js'
import { type Logger, silentLogger } from '../base/logger.js'
import type { BoundaryPolicy, RetryPolicy } from '../core/index.js'
import { makeStorable } from '../base/text.js'
import type { Ledger } from '../ledger/ledger.js'
import { memoryLedger } from '../ledger/memory.js'
import type { CompletedTurn, MemoryAgent } from './agent.js'
import { describeError } from './describe-error.js'

/** Whom a segment belongs to. Work that never had an owner has no `agentId`. */
export interface Owner {
  readonly sessionId: string
  readonly agentId?: string
}

/** Rebuilds an owner that is gone. Nothing means: not possible now. A throw counts as a failed attempt. */
export type Revive = (
  owner: Owner,
  context: { readonly signal: AbortSignal },
) => MemoryAgent | undefined | Promise<MemoryAgent | undefined>

export type Transcript = (sessionId: string, from: number, to: number) => AsyncIterable<CompletedTurn>

export interface LifecycleOptions {
  /** Where everything is recorded. @default memoryLedger() */
  readonly ledger?: Ledger
  /** Rebuilds owners that were evicted or belong to an earlier process. Without it their work waits for them. */
  readonly revive?: Revive
  /** Gives the turns of a range that were not handed over with their marks. */
  readonly transcript?: Transcript
  /** A pino logger, or anything like it. @default silent */
  readonly logger?: Logger
  /** Commits in flight at once, over all sessions. @default 32 */
  readonly concurrency?: number
  /** How long one provider call, the revival of its owner included, may take before it is aborted. @default 60000 */
  readonly commitTimeoutMs?: number
  /** How long an aborted call may take to return before it is abandoned. @default 5000 */
  readonly abandonGraceMs?: number
  /** How long an accepted segment may stay unsettled before it is parked with its receipt. @default 1800000 */
  readonly settleTimeoutMs?: number
  /** How the coordinator repeats what it began itself. @default { attempts: 8, minDelayMs: 1000, maxDelayMs: 300000 } */
  readonly retry?: Partial<RetryPolicy>
  /** Whether segments that are parked, unsettled or without a reachable owner hold up later ones. @default 'available' */
  readonly order?: 'available' | 'strict'
  /** Boundaries that come by themselves. @default none */
  readonly boundaries?: Partial<BoundaryPolicy>
  /** @default the system's clock */
  readonly clock?: Clock
  /** Random numbers from 0 to 1, for the jitter. @default Math.random */
  readonly random?: () => number
  /**
   * What is recorded, logged and shown of a provider's error. By default its name, code and status, but not its message:
   * providers quote what they were sent.
   */
  readonly describeError?: (error: unknown) => string
}

export interface Settings {
  readonly ledger: Ledger
  readonly revive: Revive | undefined
  readonly transcript: Transcript | undefined
  readonly logger: Logger
  readonly concurrency: number
  readonly commitTimeoutMs: number
  readonly abandonGraceMs: number
  readonly settleTimeoutMs: number
  readonly retry: RetryPolicy
  readonly order: 'available' | 'strict'
  readonly boundaries: BoundaryPolicy
  readonly clock: Clock
  readonly random: () => number
  readonly describeError: (error: unknown) => string
}

const DEFAULTS = Object.freeze({
  concurrency: 32,
  commitTimeoutMs: 60_000,
  abandonGraceMs: 5_000,
  settleTimeoutMs: 30 * 60_000,
  retry: Object.freeze({ attempts: 8, minDelayMs: 1_000, maxDelayMs: 300_000 }),
  order: 'available' as const,
  boundaries: Object.freeze({ idleMs: undefined, maxTurns: undefined, maxAgeMs: undefined, minIntervalMs: 0 }),
})

const ORDERS: readonly string[] = ['available', 'strict']

const KNOWN = new Set([
  ...[
    'ledger',
    'revive',
    'transcript',
    'logger',
    'concurrency',
    'commitTimeoutMs',
    'abandonGraceMs',
    'settleTimeoutMs',
  ],
  ...['retry', 'order', 'boundaries', 'clock', 'random', 'describeError'],
])

/** Fills in the defaults and refuses nonsense; the caller's object is only read. */
export function resolveOptions(options: LifecycleOptions): Settings {
  for (const name of Object.keys(options)) {
    if (!KNOWN.has(name)) {
      throw new TypeError(`MemoryLifecycle has no option '${name}'. It knows: ${[...KNOWN].join(', ')}.`)
    }
  }
  const { retry, boundaries } = options
  const order = options.order ?? DEFAULTS.order
  if (!ORDERS.includes(order)) {
    throw new TypeError(`order must be one of ${ORDERS.join(', ')}, but is ${JSON.stringify(order)}.`)
  }
  const minDelayMs = duration('retry.minDelayMs', retry?.minDelayMs, DEFAULTS.retry.minDelayMs)
  const maxDelayMs = duration('retry.maxDelayMs', retry?.maxDelayMs, Math.max(minDelayMs, DEFAULTS.retry.maxDelayMs))
  if (maxDelayMs < minDelayMs) {
    throw new TypeError(`retry.maxDelayMs (${maxDelayMs}) must not be less than retry.minDelayMs (${minDelayMs}).`)
  }
  return Object.freeze({
    ledger: options.ledger ?? memoryLedger(),
    revive: options.revive,
    transcript: options.transcript,
    logger: options.logger ?? silentLogger,
    concurrency: count('concurrency', options.concurrency, DEFAULTS.concurrency),
    commitTimeoutMs: duration('commitTimeoutMs', options.commitTimeoutMs, DEFAULTS.commitTimeoutMs),
    abandonGraceMs: duration('abandonGraceMs', options.abandonGraceMs, DEFAULTS.abandonGraceMs),
    settleTimeoutMs: duration('settleTimeoutMs', options.settleTimeoutMs, DEFAULTS.settleTimeoutMs),
    retry: Object.freeze({
      attempts: count('retry.attempts', retry?.attempts, DEFAULTS.retry.attempts),
      minDelayMs,
      maxDelayMs,
    }),
    order,
    boundaries: Object.freeze({
      idleMs: optional(duration, 'boundaries.idleMs', boundaries?.idleMs),
      maxTurns: optional(count, 'boundaries.maxTurns', boundaries?.maxTurns),
      maxAgeMs: optional(duration, 'boundaries.maxAgeMs', boundaries?.maxAgeMs),
      minIntervalMs: duration('boundaries.minIntervalMs', boundaries?.minIntervalMs, DEFAULTS.boundaries.minIntervalMs),
    }),
    clock: options.clock ?? systemClock,
    random: options.random ?? Math.random,
    describeError: options.describeError === undefined ? describeError : describedBy(options.describeError),
  })
}

/** The host's own words, unless it stumbles over what a provider threw. They are recorded, so they must be storable. */
function describedBy(describe: (error: unknown) => unknown): (error: unknown) => string {
  return (error) => {
    try {
      const words = describe(error)
      return typeof words === 'string' ? makeStorable(words) : describeError(error)
    } catch {
      return describeError(error)
    }
  }
}

type Check = (name: string, value: number | undefined, fallback: number) => number

function optional(check: Check, name: string, value: number | undefined): number | undefined {
  return value === undefined ? undefined : check(name, value, 0)
}

export function count(name: string, value: number | undefined, fallback: number): number {
  const number = value ?? fallback
  if (!Number.isSafeInteger(number) || number < 1) {
    throw new TypeError(`${name} must be a whole number of at least 1, but is ${String(number)}.`)
  }
  return number
}

export function duration(name: string, value: number | undefined, fallback: number): number {
  const number = value ?? fallback
  if (typeof number !== 'number' || !(number >= 0)) {
    throw new TypeError(`${name} must be a number of milliseconds of at least 0, but is ${String(number)}.`)
  }
  return number
}
