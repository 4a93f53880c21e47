import { constants } from 'node:os'
import closeWithGrace from 'close-with-grace'
import { describeError } from '../coordinator/describe-error.js'
import { resolveShutdownOptions, type ShutdownOptions, SIGNALS } from './options.js'
import type { ShutdownReport, ShutdownTrigger } from './report.js'
import { shutDown } from './shut-down.js'

export interface ShutdownHandle {
  /** Shuts down without a signal, once. The process is not ended: `exitCode` of the report says how it should be. */
  shutdown(): Promise<ShutdownReport>
  /** Takes the listeners off the process. A shutdown that has begun goes on. */
  uninstall(): void
  /** Aborted when a shutdown begins: answer new turns with "try again later" from then on. */
  readonly signal: AbortSignal
}

/** What close-with-grace would listen to, and we do not want. */
const NEVER = ['SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'beforeExit'] as const
/** It exits on a second error; an error must not cut a drain short, so errors are our own business. */
const OURS = ['uncaughtException', 'unhandledRejection'] as const

/**
 * Ends the process in order when a signal or an uncaught error says so. The first signal begins the shutdown, or joins one
 * that an error or a call began; the second exits at once. Install it once in a process.
 */
export function gracefulShutdown(options: ShutdownOptions): ShutdownHandle {
  const settings = resolveShutdownOptions(options)
  const { logger, signals } = settings
  const begun = new AbortController()
  let running: Promise<ShutdownReport> | undefined
  let strayErrors = 0

  const begin = (trigger: ShutdownTrigger): Promise<ShutdownReport> => {
    running ??= shutDown(settings, trigger, () => strayErrors)
    begun.abort()
    return running
  }
  const endProcess = ({ exitCode }: ShutdownReport): never => process.exit(exitCode)

  const onError = (error: unknown): void => {
    if (running !== undefined) strayErrors += 1
    else begin({ kind: 'error' }).then(endProcess, () => process.exit(1))
    try {
      logger.error({ err: describeError(error), frames: framesOf(error) }, 'an error was not caught')
      settings.onError?.(error)
    } catch {
      // A throw in here would end the process at once, and the drain with it.
      strayErrors += 1
    }
  }
  // close-with-grace changes its listeners at the first signal. Where the last listener goes, Node drops a signal that has
  // arrived and is not delivered yet: this one stays, so that a second signal close behind the first is not lost.
  for (const signal of signals) process.on(signal, stay)
  const grace = closeWithGrace(
    {
      delay: false,
      logger: false,
      skip: [...NEVER, ...OURS, ...SIGNALS.filter((signal) => !signals.includes(signal))],
      onSecondSignal: (signal) => {
        logger.error({ signal }, 'a second signal: exiting at once')
        process.exit(128 + constants.signals[signal])
      },
    },
    async ({ signal }) => {
      endProcess(await begin(signal === undefined ? { kind: 'call' } : { kind: 'signal', signal }))
    },
  )
  // A rejection that nobody handles arrives here too, unless somebody listens for those.
  if (settings.catchErrors) process.on('uncaughtException', onError)
  const uninstall = (): void => {
    grace.uninstall()
    for (const signal of signals) process.off(signal, stay)
    process.off('uncaughtException', onError)
  }
  return {
    signal: begun.signal,
    shutdown: () => begin({ kind: 'call' }).finally(uninstall),
    uninstall,
  }
}

function stay(): void {
  // Listening is all it does.
}

/** Where it was thrown, without what it says: a message may quote a conversation. */
function framesOf(error: unknown): string[] {
  const stack = error instanceof Error ? error.stack : undefined
  return (stack ?? '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('at '))
    .slice(0, 10)
}
