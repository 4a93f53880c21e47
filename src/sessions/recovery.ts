import type { Clock } from '../base/clock.js'
import type { Logger } from '../base/logger.js'
import { giveUp, interruptTurn, isExpired, retryRecovery, type RecoveryLimits } from './recovery-plan.js'
import { viewOf, type RunView } from './run-output.js'
import type { JournalPort, Recovery, RunEvent, Session } from './types.js'

export interface RecovererOptions {
  readonly journal: JournalPort | undefined
  readonly limits: RecoveryLimits
  readonly clock: Clock
  readonly logger: Logger
  readonly isAlive: (sessionId: string, runId: string) => Promise<boolean>
}

/** Looks at the journal and applies what `recovery-plan` decides. Called under the session's lock. */
export class Recoverer {
  readonly #options: RecovererOptions

  constructor(options: RecovererOptions) {
    this.#options = options
  }

  /** Whether a read has anything to look at; cheap, because every read asks. */
  mayHaveWork(session: Session): boolean {
    return session.recoveries.length > 0 || hasPendingTurn(session)
  }

  /** Changes the session in memory; `changed` says that it has to be saved. */
  async recover(
    session: Session,
    { ignoreGrace }: { readonly ignoreGrace: boolean },
  ): Promise<{ changed: boolean; finishedRuns: string[] }> {
    const finishedRuns: string[] = []
    let changed = false
    for (const recovery of session.recoveries) {
      const outcome = await this.#retry(session, recovery)
      changed ||= outcome.changed
      if (outcome.finished) finishedRuns.push(recovery.runId)
    }
    if (await this.#isInterrupted(session, ignoreGrace)) {
      const runId = session.activeRunId
      const { view } = runId === null ? { view: undefined } : await this.view(session, runId)
      finishedRuns.push(...interruptTurn(session, view, this.#options.clock.now()))
      changed = true
    }
    return { changed, finishedRuns }
  }

  /** What the journal shows of a run; a journal that cannot be read now counts as still arriving. */
  async view(session: Session, runId: string): Promise<{ view: RunView | undefined; isReadable: boolean }> {
    const { journal, logger } = this.#options
    if (journal === undefined) return { view: undefined, isReadable: true }
    try {
      return { view: await this.#read(journal, session, runId), isReadable: true }
    } catch (error) {
      logger.warn({ err: error, sessionId: session.id, runId }, 'a run journal cannot be read now')
      return { view: viewOf([], false), isReadable: false }
    }
  }

  async #read(journal: JournalPort, session: Session, runId: string): Promise<RunView> {
    // A crash in the middle of a rotation may have left the journal at the old id.
    const places = session.rotatedFrom === null ? [session.id] : [session.id, session.rotatedFrom]
    let damaged = false
    for (const place of places) {
      const events = await collect(journal.read(place, runId))
      if (events.length > 0) return viewOf(events, false)
      damaged ||= (await journal.summary(place, runId)).damaged.length > 0
    }
    return viewOf([], damaged)
  }

  async #isInterrupted(session: Session, ignoreGrace: boolean): Promise<boolean> {
    if (!hasPendingTurn(session)) return false
    const { clock, isAlive, limits } = this.#options
    const age = clock.now() - (session.pendingStartedAt ?? 0)
    if (!ignoreGrace && age <= limits.graceMs) return false
    return session.activeRunId === null || !(await isAlive(session.id, session.activeRunId))
  }

  async #retry(session: Session, recovery: Recovery): Promise<{ changed: boolean; finished: boolean }> {
    const { journal, clock, limits, logger } = this.#options
    if (isExpired(recovery, clock.now(), limits) || journal === undefined) {
      giveUp(session, recovery)
      return { changed: true, finished: true }
    }
    try {
      if (!(await this.#hasNews(journal, session, recovery))) return { changed: false, finished: false }
      const view = await this.#read(journal, session, recovery.runId)
      return retryRecovery(session, recovery, view, limits)
    } catch (error) {
      // Unreadable now is not known to be lost: it costs no attempt.
      logger.warn({ err: error, sessionId: session.id, runId: recovery.runId }, 'a run journal cannot be read now')
      return { changed: false, finished: false }
    }
  }

  /** Without a gap in what was merged, news can only stand behind it, and looking there is cheap. */
  async #hasNews(journal: JournalPort, session: Session, { runId, lastSeq, events }: Recovery): Promise<boolean> {
    if (lastSeq === 0 || events < lastSeq) return true
    for await (const _ of journal.read(session.id, runId, { after: lastSeq })) return true
    return false
  }
}

export function hasPendingTurn(session: Session): boolean {
  return session.activeRunId !== null || session.pendingUserMessage !== null
}

async function collect(events: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const all: RunEvent[] = []
  for await (const event of events) all.push(event)
  return all
}
