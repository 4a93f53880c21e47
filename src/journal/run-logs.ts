import type { Logger } from '../base/logger.js'
import { AppendLog } from '../log/append-log.js'
import { ifExists, type OpenLogFile } from '../log/files.js'
import { serialiseFields } from '../log/line.js'
import { OpenFiles } from '../log/open-files.js'
import { positionAtEnd } from '../log/scan.js'
import { eventOf, JOURNAL_FORMAT, readJournal, type JournalFiles } from './journal-files.js'

export interface RunLogsOptions {
  readonly journals: JournalFiles
  readonly maxOpenRuns: number
  readonly logger: Logger
  readonly openFile: OpenLogFile | undefined
  /** What was written is synced by a timer: a run that is put away before is synced first. */
  readonly syncsLater: boolean
}

/** Each sync takes a descriptor for the file and one for its directory. */
const SYNCS_AT_ONCE = 16

interface Run {
  log: AppendLog | undefined
  /** The log while it is opened, moved or written anew. It stays until the last one who waited has appended. */
  preparing: Promise<AppendLog> | undefined
  waiting: number
  /** An event that ends it was appended. */
  ended: boolean
}

const newRun = (): Run => ({ log: undefined, preparing: undefined, waiting: 0, ended: false })

/** The logs of the runs that are written to now: opened on first use, moved with their session, bounded in number. */
export class RunLogs {
  readonly #options: RunLogsOptions
  readonly #files: OpenFiles
  readonly #runs = new Map<string, Run>()
  /** Runs whose session was renamed while they ran: every earlier place leads to the session of today. */
  readonly #moved = new Map<string, string>()
  /** Runs that are being put away. */
  readonly #leaving = new Set<Promise<void>>()

  constructor(options: RunLogsOptions) {
    this.#options = options
    // As many as there are runs: with fewer, streams that take turns would open and close a file for every token.
    this.#files = new OpenFiles(options.maxOpenRuns)
  }

  /** The session under which the run is kept now. */
  placeOf(sessionId: string, runId: string): string {
    return this.#moved.get(keyOf(sessionId, runId)) ?? sessionId
  }

  /** Calls back with the run's log, in the order of the calls: at once where it is open. */
  async with<T>(sessionId: string, runId: string, ends: boolean, append: (log: AppendLog) => Promise<T>): Promise<T> {
    const run = this.#run(sessionId, runId)
    run.ended ||= ends
    if (run.log !== undefined && run.preparing === undefined && !run.log.poisoned) return append(run.log)
    run.preparing ??= this.#prepare(run, sessionId, runId)
    return this.#waitTurn(run, run.preparing, append)
  }

  /** A run that has ended is hardly written to again: its file is closed. One more event opens it anew. */
  async rest(sessionId: string, runId: string): Promise<void> {
    try {
      await this.#runs.get(keyOf(this.placeOf(sessionId, runId), runId))?.log?.rest()
    } catch (error) {
      this.#options.logger.warn({ err: error }, 'closing a journal failed')
    }
  }

  async move(fromSessionId: string, toSessionId: string, runId: string): Promise<void> {
    const from = this.placeOf(fromSessionId, runId)
    if (from === toSessionId) return
    const before = this.#runs.get(keyOf(from, runId))
    const run: Run = { ...newRun(), ended: before?.ended ?? false }
    this.#rename(run, from, toSessionId, runId)
    const moving = this.#moveFile(before, from, toSessionId, runId)
    run.preparing = moving
      .catch(async () => {
        // It stays where it is, for both ids: what waits goes on behind what is there.
        if (await this.#options.journals.has(from, runId)) this.#rename(run, toSessionId, from, runId)
      })
      .then(() => this.#open(this.placeOf(toSessionId, runId), runId))
    await this.#waitTurn(run, run.preparing, () => Promise.resolve())
    await moving
  }

  /** Closes the log of one run, or of all runs of a session, and forgets it. */
  async drop(sessionId: string, runId?: string): Promise<void> {
    const isIt = (key: string) =>
      runId === undefined ? key.startsWith(`${sessionId}/`) : key === keyOf(sessionId, runId)
    // Only those of now: whoever goes on appending must not keep this from ending.
    for (const [key, run] of [...this.#runs]) {
      if (!isIt(key)) continue
      this.#runs.delete(key)
      await closeRun(run)
    }
    this.#forgetMoves(isIt)
  }

  /** Syncs what was written and not synced; failures are logged, and the next append writes that journal anew. */
  async syncAll(): Promise<void> {
    await this.#all(async ({ log }) => {
      if (log?.exists === true && !log.synced && !log.poisoned) await log.sync()
    }, 'syncing a journal failed')
  }

  async closeAll(): Promise<void> {
    await this.#all(async (run) => {
      await run.preparing
    }, 'opening a journal failed')
    await this.syncAll()
    await this.#all(closeRun, 'closing a journal failed')
    await Promise.all(this.#leaving)
    this.#runs.clear()
    this.#moved.clear()
  }

  async #all(work: (run: Run) => Promise<void>, failure: string): Promise<void> {
    const waiting = [...this.#runs.values()]
    const workNext = async (): Promise<void> => {
      for (let run = waiting.pop(); run !== undefined; run = waiting.pop()) {
        await work(run).catch((error: unknown) => this.#options.logger.error({ err: error }, failure))
      }
    }
    await Promise.all(Array.from({ length: SYNCS_AT_ONCE }, workNext))
  }

  async #waitTurn<T>(run: Run, preparing: Promise<AppendLog>, append: (log: AppendLog) => Promise<T>): Promise<T> {
    run.waiting += 1
    try {
      run.log = await preparing
    } finally {
      run.waiting -= 1
      // Only with the last one may others append without waiting: earlier they would have overtaken somebody.
      if (run.waiting === 0 && run.preparing === preparing) run.preparing = undefined
    }
    return append(run.log)
  }

  #run(sessionId: string, runId: string): Run {
    const key = keyOf(this.placeOf(sessionId, runId), runId)
    let run = this.#runs.get(key)
    if (run === undefined) {
      run = newRun()
      if (this.#runs.size >= this.#options.maxOpenRuns) this.#forgetIdleRun()
      this.#runs.set(key, run)
    }
    return run
  }

  async #prepare(run: Run, sessionId: string, runId: string): Promise<AppendLog> {
    const place = this.placeOf(sessionId, runId)
    if (run.log?.poisoned !== true) return this.#open(place, runId)
    await this.#writeAnew(run.log, this.#options.journals.path(place, runId))
    return run.log
  }

  async #open(sessionId: string, runId: string): Promise<AppendLog> {
    const { journals, openFile } = this.#options
    await journals.prepareFolder(sessionId)
    const path = journals.path(sessionId, runId)
    // The first piece carries the header: a newer version is refused before anything is appended.
    for await (const _ of readJournal(path, 0)) break
    const position = await ifExists(positionAtEnd(path))
    return new AppendLog({
      path,
      header: { ...JOURNAL_FORMAT, session: sessionId, run: runId },
      position: position?.size === 0 ? undefined : position,
      files: this.#files,
      ...(openFile === undefined ? {} : { openFile }),
    })
  }

  /** After a failed sync only a new file can be trusted: everything that can still be read goes into it. */
  async #writeAnew(log: AppendLog, path: string): Promise<void> {
    const records: { seq: number; fields: string }[] = []
    for await (const lines of readJournal(path, 0)) {
      for (const { record } of lines) {
        const event = record === undefined ? undefined : eventOf(record)
        if (event === undefined) continue
        const { seq, ...fields } = event
        records.push({ seq, fields: serialiseFields(fields) })
      }
    }
    await log.replace(records, true)
    this.#options.logger.error({ path, events: records.length }, 'a write failed; the journal was written anew')
  }

  #forgetIdleRun(): void {
    for (const [key, run] of this.#runs) {
      if (run.preparing !== undefined || run.log?.busy === true) continue
      this.#runs.delete(key)
      // While it goes on, somebody may still use an id from before.
      if (run.ended) this.#forgetMoves((place) => place === key)
      const leaving = this.#putAway(run).finally(() => this.#leaving.delete(leaving))
      this.#leaving.add(leaving)
      return
    }
  }

  async #putAway(run: Run): Promise<void> {
    const { logger, syncsLater } = this.#options
    try {
      if (syncsLater && run.log?.exists === true && !run.log.poisoned) await run.log.sync()
      await closeRun(run)
    } catch (error) {
      logger.error({ err: error }, 'syncing or closing a journal failed')
    }
  }

  async #moveFile(before: Run | undefined, from: string, to: string, runId: string): Promise<void> {
    if (before !== undefined) await closeRun(before)
    await this.#options.journals.move(from, to, runId)
  }

  /** The run is kept under another session from now on, and whatever led to the old one leads there. */
  #rename(run: Run, from: string, to: string, runId: string): void {
    this.#runs.delete(keyOf(from, runId))
    this.#runs.set(keyOf(to, runId), run)
    this.#moved.set(keyOf(from, runId), to)
    for (const [old, place] of this.#moved) {
      if (place === from && old.endsWith(`/${runId}`)) this.#moved.set(old, to)
    }
    this.#moved.delete(keyOf(to, runId))
  }

  #forgetMoves(leadsTo: (key: string) => boolean): void {
    for (const [old, place] of this.#moved) {
      if (leadsTo(keyOf(place, old.slice(old.indexOf('/') + 1)))) this.#moved.delete(old)
    }
  }
}

async function closeRun(run: Run): Promise<void> {
  // Who waits for a log that could not be opened hears of it; closing has nothing to add.
  await (await run.preparing?.catch(() => undefined))?.close()
  await run.log?.close()
}

const keyOf = (sessionId: string, runId: string): string => `${sessionId}/${runId}`
