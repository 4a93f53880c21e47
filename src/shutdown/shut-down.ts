import { describeError } from '../coordinator/describe-error.js'
import type { DrainReport } from '../coordinator/reports.js'
import { ABORTED, waitOrAbort } from '../coordinator/wait.js'
import type { ShutdownSettings, StepContext } from './options.js'
import { drainTime, endOf, type StepName } from './plan.js'
import { exitCodeOf, logReport, type ShutdownReport, type ShutdownTrigger, type StepReport } from './report.js'
import { closeServers } from './servers.js'

type Work = ((context: StepContext & { readonly endAt: number }) => unknown) | undefined

/** One ordered close. Always ends by the deadline, never rejects. */
export async function shutDown(
  settings: ShutdownSettings,
  trigger: ShutdownTrigger,
  countStrayErrors: () => number,
): Promise<ShutdownReport> {
  const { clock, deadlineMs, logger, lifecycle, sessions, journal, pool } = settings
  const startedAt = clock.now()
  const steps: StepReport[] = []
  let saved: ShutdownReport['sessions']
  let drained: DrainReport | undefined

  const step = async (name: StepName, work: Work): Promise<void> => {
    const endAt = endOf(name, startedAt, deadlineMs, clock.now())
    steps.push(await runStep(settings, name, work, endAt))
  }

  logger.info({ trigger, deadlineMs }, 'shutting down')
  const servers = closeServers(settings.servers, clock)
  await step(
    'checkpointers',
    settings.stopCheckpointers ?? (sessions?.stopCheckpointers && (() => sessions.stopCheckpointers?.())),
  )
  await step('turns', settings.waitForTurns ?? (settings.servers.length === 0 ? undefined : () => servers.closed))
  await step('interrupt', settings.interruptTurns)
  await step('connections', settings.servers.length === 0 ? undefined : () => servers.closed)
  servers.cut()
  await step(
    'flush',
    sessions &&
      (async () => {
        const { flushed, failed } = await sessions.flushAll()
        saved = { flushed, failed: failed.map(({ id }) => id) }
      }),
  )
  await step('drain', async ({ endAt }) => {
    drained = await lifecycle.drain({ deadlineMs: drainTime(endAt, deadlineMs, clock.now()) })
  })
  await step('pool', pool && ((context) => pool.close(context)))
  await step('journal', journal && (() => journal.close()))
  await step('sessions', sessions && (() => sessions.close()))
  await step('lifecycle', () => lifecycle.close())

  const facts = {
    trigger,
    steps,
    strayErrors: countStrayErrors(),
    durationMs: clock.now() - startedAt,
    ...(saved === undefined ? {} : { sessions: saved }),
    ...(drained === undefined ? {} : { drain: drained }),
  }
  const report: ShutdownReport = { ...facts, exitCode: exitCodeOf(facts) }
  logReport(logger, report)
  const { onReport } = settings
  const endAt = endOf('report', startedAt, deadlineMs, clock.now())
  await runStep(settings, 'report', onReport && (() => onReport(report)), endAt)
  return report
}

/** Runs one step until it ends or its time is over. What fails is logged and does not keep the others from running. */
async function runStep(settings: ShutdownSettings, step: StepName, work: Work, endAt: number): Promise<StepReport> {
  const { clock, logger } = settings
  const startedAt = clock.now()
  const ended = (status: StepReport['status'], error?: string): StepReport => ({
    step,
    status,
    durationMs: clock.now() - startedAt,
    ...(error === undefined ? {} : { error }),
  })
  if (work === undefined) return ended('skipped')
  const limit = new AbortController()
  const cancelLimit = clock.setTimer(() => limit.abort(), endAt - startedAt, { keepAlive: true })
  // What throws at once is a failed step like any other.
  const running = Promise.resolve().then(() => work({ signal: limit.signal, endAt }))
  try {
    if ((await waitOrAbort(running, limit.signal)) !== ABORTED) return ended('done')
    running.catch((error: unknown) => logger.warn({ step, err: describeError(error) }, 'a step failed after its time'))
    logger.warn({ step }, 'a step of the shutdown did not end within its share of the deadline')
    return ended('left')
  } catch (error) {
    logger.error({ step, err: describeError(error) }, 'a step of the shutdown failed')
    return ended('failed', describeError(error))
  } finally {
    cancelLimit()
  }
}
