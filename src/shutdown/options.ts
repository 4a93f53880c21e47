import { type Clock, systemClock } from '../base/clock.js'
import { type Logger, silentLogger } from '../base/logger.js'
import type { MemoryLifecycle } from '../coordinator/lifecycle.js'
import { duration } from '../coordinator/options.js'
import type { ShutdownReport } from './report.js'
import type { Server } from './servers.js'

export type ShutdownSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP' | 'SIGQUIT' | 'SIGUSR2'

/** Aborted when the step's share of the deadline is over and the shutdown goes on without it. */
export interface StepContext {
  readonly signal: AbortSignal
}

export interface ShutdownOptions {
  readonly lifecycle: Pick<MemoryLifecycle, 'drain' | 'close'>
  /** A `SessionStore`, or anything that saves everything it has loaded. */
  readonly sessions?: {
    flushAll(): Promise<{
      readonly flushed: number
      readonly failed: readonly { readonly id: string; readonly error: unknown }[]
    }>
    stopCheckpointers?(): Promise<unknown>
    close(): Promise<unknown>
  }
  /** A `RunJournal`. */
  readonly journal?: { close(): Promise<unknown> }
  /** An `AgentPool`, or whatever closes your agents. */
  readonly pool?: { close(context: StepContext): Promise<unknown> }
  /** They stop accepting at once; running requests go on. */
  readonly servers?: readonly Server[]
  /** Stops checkpointers and waits for writes in progress. @default `sessions.stopCheckpointers` */
  readonly stopCheckpointers?: (context: StepContext) => unknown
  /** Resolves when no turn is running. @default the end of all requests of `servers` */
  readonly waitForTurns?: (context: StepContext) => unknown
  /** Records turns that are still running as interrupted (in the run journal, say) and stops them. */
  readonly interruptTurns?: (context: StepContext) => unknown
  /** For everything together. Keep it below the kill timer of your supervisor. @default 20000 */
  readonly deadlineMs?: number
  /** @default ['SIGTERM', 'SIGINT', 'SIGHUP'] */
  readonly signals?: readonly ShutdownSignal[]
  /** Shut down on an uncaught error too, and survive further ones meanwhile. @default true */
  readonly catchErrors?: boolean
  /** Gets every uncaught error as it is; the log has only its name, code and stack frames. */
  readonly onError?: (error: unknown) => void
  /** Called at the very end, before the process exits. */
  readonly onReport?: (report: ShutdownReport) => unknown
  /** @default silent */
  readonly logger?: Logger
  /** @default the system's clock */
  readonly clock?: Clock
}

export type ShutdownSettings = ShutdownOptions &
  Required<Pick<ShutdownOptions, 'servers' | 'deadlineMs' | 'signals' | 'catchErrors' | 'logger' | 'clock'>>

export const SIGNALS: readonly ShutdownSignal[] = Object.freeze(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR2'])

const DEFAULTS = Object.freeze({
  deadlineMs: 20_000,
  signals: Object.freeze<ShutdownSignal[]>(['SIGTERM', 'SIGINT', 'SIGHUP']),
})

const FUNCTIONS = ['stopCheckpointers', 'waitForTurns', 'interruptTurns', 'onError', 'onReport'] as const
const METHODS = { lifecycle: ['drain', 'close'], sessions: ['flushAll', 'close'], journal: ['close'], pool: ['close'] }
const KNOWN: readonly string[] = [
  ...Object.keys(METHODS),
  ...FUNCTIONS,
  ...['servers', 'deadlineMs', 'signals', 'catchErrors', 'logger', 'clock'],
]

/** Refuses nonsense before anything is installed: during a shutdown it would be too late. */
export function resolveShutdownOptions(options: ShutdownOptions): ShutdownSettings {
  for (const name of Object.keys(options)) {
    if (!KNOWN.includes(name)) {
      throw new TypeError(`gracefulShutdown has no option '${name}'. It knows: ${KNOWN.join(', ')}.`)
    }
  }
  const given = options as unknown as Record<string, unknown>
  for (const [name, methods] of Object.entries(METHODS)) checkMethods(name, given[name], methods)
  for (const name of FUNCTIONS) {
    if (given[name] !== undefined && typeof given[name] !== 'function')
      throw new TypeError(`${name} must be a function.`)
  }
  const { signals = DEFAULTS.signals, servers = [] } = options
  for (const signal of signals) {
    if (!SIGNALS.includes(signal)) {
      throw new TypeError(`signals must be some of ${SIGNALS.join(', ')}, but one is ${JSON.stringify(signal)}.`)
    }
  }
  for (const server of servers) if (typeof server !== 'function') checkMethods('servers', server, ['close'])
  return Object.freeze({
    ...options,
    signals,
    servers,
    deadlineMs: duration('deadlineMs', options.deadlineMs, DEFAULTS.deadlineMs),
    catchErrors: options.catchErrors ?? true,
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock,
  })
}

function checkMethods(name: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined && name !== 'lifecycle') return
  const candidate = (value ?? {}) as Record<string, unknown>
  const missing = methods.filter((method) => typeof candidate[method] !== 'function')
  if (missing.length > 0) throw new TypeError(`${name} must have the method ${missing.join(' and the method ')}.`)
}
