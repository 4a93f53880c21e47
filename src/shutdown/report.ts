import type { Logger } from '../base/logger.js'
import type { DrainReport } from '../coordinator/reports.js'
import type { StepName } from './plan.js'

/** What made the process end. */
export type ShutdownTrigger =
  { readonly kind: 'signal'; readonly signal: string } | { readonly kind: 'error' } | { readonly kind: 'call' }

export interface StepReport {
  readonly step: StepName
  /** `left`: it did not end within its share of the deadline, and was left behind. */
  readonly status: 'done' | 'failed' | 'left' | 'skipped'
  readonly durationMs: number
  /** Name and code of the error, without its message. */
  readonly error?: string
}

export interface ShutdownReport {
  readonly trigger: ShutdownTrigger
  /** 0 when everything was handed over, else 1. */
  readonly exitCode: 0 | 1
  readonly steps: readonly StepReport[]
  /** What `flushAll` of the session store said. */
  readonly sessions?: { readonly flushed: number; readonly failed: readonly string[] }
  readonly drain?: DrainReport
  /** Uncaught errors that came up while shutting down. */
  readonly strayErrors: number
  readonly durationMs: number
}

/**
 * Whether everything was handed over: every step done, every session saved, nothing dirty left. A turn may be cut short
 * if it was recorded as interrupted; a connection may be cut once it carries no turn.
 */
export function exitCodeOf(report: Omit<ShutdownReport, 'exitCode'>): 0 | 1 {
  if (report.trigger.kind === 'error') return 1
  const statusOf = (step: StepName): StepReport['status'] | undefined =>
    report.steps.find((each) => each.step === step)?.status
  const isInOrder = report.steps.every(({ step, status }) => {
    if (status === 'done' || status === 'skipped') return true
    if (status === 'failed') return false
    return step === 'connections' || (step === 'turns' && statusOf('interrupt') === 'done')
  })
  const isSaved = (report.sessions?.failed.length ?? 0) === 0
  const isCommitted = report.drain !== undefined && report.drain.remaining.length === 0
  return isInOrder && isSaved && isCommitted ? 0 : 1
}

/** As many as a person reads; the report itself has them all. */
const MOST_LOGGED = 20

export function logReport(logger: Logger, report: ShutdownReport): void {
  const { drain, sessions, steps, ...rest } = report
  const remaining = drain?.remaining ?? []
  const fields = {
    ...rest,
    steps: steps.filter(({ status }) => status !== 'skipped'),
    ...(sessions === undefined ? {} : { sessions: { ...sessions, failed: sessions.failed.slice(0, MOST_LOGGED) } }),
    ...(drain === undefined
      ? {}
      : { drain: { ...drain, remaining: remaining.slice(0, MOST_LOGGED), remainingCount: remaining.length } }),
  }
  if (report.exitCode === 0) logger.info(fields, 'shut down: everything was handed over')
  else if (remaining.length === 0) logger.error(fields, 'shut down, but not everything went well: see steps')
  else
    logger.error(
      fields,
      `shut down with ${remaining.length} segments not committed; a persistent ledger has them for the next start`,
    )
}
