import { systemClock, type Clock } from '../base/clock.js'
import { TidemarkError } from '../base/errors.js'
import { silentLogger, type Logger } from '../base/logger.js'
import { assertId } from '../log/file-name.js'
import { makeDirectory, type OpenLogFile } from '../log/files.js'
import { eventOf, JournalFiles, readJournal } from './journal-files.js'
import { chooseExpired, type Retention } from './retention.js'
import { RunLogs } from './run-logs.js'
import { ENDING_EVENTS, isEventName, stateAfter } from './run-state.js'
import type { JournalEvent, JournalEventName, JournalPayloads, PruneReport, RunState, RunSummary } from './types.js'

export type FsyncMode = 'terminal' | 'eager' | 'interval'

export interface RunJournalOptions {
  readonly directory: string
  /**
   * When an event is on stable storage: `terminal` makes the events that end a run durable before they are
   * acknowledged, `eager` every event, `interval` syncs what was written every `intervalMs`.
   * @default 'terminal'
   */
  readonly fsync?: FsyncMode
  /** @default 1000 */
  readonly intervalMs?: number
  /** How many runs are remembered, with their files open, between two appends. @default 1024 */
  readonly maxOpenRuns?: number
  readonly logger?: Logger
  readonly clock?: Clock
  /** How files are opened: a test makes the disk fail here. */
  readonly openFile?: OpenLogFile
}

/** Events that carry nothing of their own may go without a payload. */
type PayloadOf<Name extends JournalEventName> =
  Record<string, never> extends JournalPayloads[Name]
    ? [payload?: JournalPayloads[Name]]
    : [payload: JournalPayloads[Name]]

const DEFAULTS = Object.freeze({ intervalMs: 1_000, maxOpenRuns: 1_024 })

/** Every token, tool event and end of a streamed answer, in one append-only file a run. */
export class RunJournal {
  readonly #fsync: FsyncMode
  readonly #intervalMs: number
  readonly #clock: Clock
  readonly #journals: JournalFiles
  readonly #logs: RunLogs
  #cancelTimer: (() => void) | undefined
  #closing: Promise<void> | undefined

  private constructor(options: RunJournalOptions) {
    this.#fsync = options.fsync ?? 'terminal'
    this.#intervalMs = options.intervalMs ?? DEFAULTS.intervalMs
    this.#clock = options.clock ?? systemClock
    this.#journals = new JournalFiles(options.directory)
    this.#logs = new RunLogs({
      journals: this.#journals,
      maxOpenRuns: options.maxOpenRuns ?? DEFAULTS.maxOpenRuns,
      logger: options.logger ?? silentLogger,
      openFile: options.openFile,
      syncsLater: this.#fsync === 'interval',
    })
  }

  static async open(options: RunJournalOptions): Promise<RunJournal> {
    checkOptions(options)
    await makeDirectory(options.directory)
    return new RunJournal(options)
  }

  /**
   * Gives the event the next number and writes it: one step, so there is no gap and file order is number order.
   * Resolves when it is written, or durable where the mode says so.
   */
  async append<Name extends JournalEventName>(
    sessionId: string,
    runId: string,
    event: Name,
    ...[payload]: PayloadOf<Name>
  ): Promise<{ seq: number }> {
    this.#assertOpen()
    assertId(sessionId, 'the session id')
    assertId(runId, 'the run id')
    if (!isEventName(event)) throw new TypeError(`Expected a journal event, found ${JSON.stringify(event)}.`)
    const json = JSON.stringify(payload ?? {}) as string | undefined
    // A function gives nothing, a `toJSON` anything: neither would be readable later.
    if (json?.startsWith('{') !== true) throw new TypeError('Expected the payload to be a plain object.')
    const fields = `"at":${this.#clock.now()},"event":"${event}","payload":${json}`
    const ends = ENDING_EVENTS[event]
    const durable = this.#fsync === 'eager' || (this.#fsync === 'terminal' && ends)
    const seq = await this.#logs.with(sessionId, runId, ends, (log) => log.append(fields, durable))
    if (this.#fsync === 'interval') this.#syncLater()
    else if (ends) await this.#logs.rest(sessionId, runId)
    return { seq }
  }

  /** The events behind a cursor, in order; damaged lines are left out. Nothing for a run without a journal. */
  async *read(
    sessionId: string,
    runId: string,
    { after = 0, limit = Infinity }: { readonly after?: number; readonly limit?: number } = {},
  ): AsyncGenerator<JournalEvent> {
    const path = this.#path(sessionId, runId)
    if (!(after >= 0)) throw new TypeError(`Expected after to be a sequence number, found ${String(after)}.`)
    if (!(limit >= 0)) throw new TypeError(`Expected limit to be a count, found ${String(limit)}.`)
    let left = limit
    for await (const lines of readJournal(path, after)) {
      for (const { record } of lines) {
        if (record === undefined || record.seq <= after) continue
        const event = eventOf(record)
        if (event === undefined) continue
        if (left-- <= 0) return
        yield event
      }
    }
  }

  /** How the run ended, its last number, and which lines are damaged. */
  async summary(sessionId: string, runId: string): Promise<RunSummary> {
    const damaged: { line: number }[] = []
    let state: RunState = 'unknown'
    let lastSeq = 0
    let line = 0
    for await (const lines of readJournal(this.#path(sessionId, runId), 0)) {
      for (const { record } of lines) {
        line += 1
        const event = record === undefined ? undefined : eventOf(record)
        if (event === undefined) {
          if (record?.seq !== 0) damaged.push({ line })
          continue
        }
        lastSeq = event.seq
        state = stateAfter(state, event.event, event.payload)
      }
    }
    return { state: line > 0 && state === 'unknown' ? 'running' : state, lastSeq, damaged }
  }

  /** Removes one journal, or all journals of a session. */
  async delete(sessionId: string, runId?: string): Promise<void> {
    this.#assertOpen()
    assertId(sessionId, 'the session id')
    if (runId !== undefined) assertId(runId, 'the run id')
    const place = runId === undefined ? sessionId : this.#logs.placeOf(sessionId, runId)
    await this.#logs.drop(place, runId)
    await this.#journals.remove(place, runId)
  }

  /** The session's transcript holds this run durably, so its journal may go when retention says so. */
  async markSaved(sessionId: string, runId: string): Promise<void> {
    assertId(sessionId, 'the session id')
    assertId(runId, 'the run id')
    await this.#journals.markSaved(this.#logs.placeOf(sessionId, runId), runId)
  }

  /** Removes journals that were marked as saved: past the age, then the oldest until all journals fit the size. */
  async prune(retention: Retention): Promise<PruneReport> {
    this.#assertOpen()
    const { saved, totalBytes } = await this.#journals.survey()
    const expired = chooseExpired(saved, totalBytes, this.#clock.now(), retention)
    for (const { sessionId, runId } of expired) await this.delete(sessionId, runId)
    return { removed: expired.length, bytes: expired.reduce((sum, { bytes }) => sum + bytes, 0) }
  }

  /** The session of a running run got a new id: its journal goes there, and so does what is still appended to the old. */
  async move(fromSessionId: string, toSessionId: string, runId: string): Promise<void> {
    this.#assertOpen()
    assertId(fromSessionId, 'the session id')
    assertId(toSessionId, 'the new session id')
    assertId(runId, 'the run id')
    await this.#logs.move(fromSessionId, toSessionId, runId)
  }

  /** Waits for what was appended, syncs it and closes every file. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #syncLater(): void {
    this.#cancelTimer ??= this.#clock.setTimer(() => {
      this.#cancelTimer = undefined
      void this.#logs.syncAll()
    }, this.#intervalMs)
  }

  async #closeAll(): Promise<void> {
    this.#cancelTimer?.()
    await this.#logs.closeAll()
  }

  #path(sessionId: string, runId: string): string {
    assertId(sessionId, 'the session id')
    assertId(runId, 'the run id')
    return this.#journals.path(this.#logs.placeOf(sessionId, runId), runId)
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TidemarkError('CLOSED', 'The run journal is closed.')
  }
}

function checkOptions({ directory, fsync = 'terminal', intervalMs = 1, maxOpenRuns = 1 }: RunJournalOptions): void {
  if (typeof directory !== 'string' || directory === '') throw new TypeError('Expected directory to be a path.')
  if (!['terminal', 'eager', 'interval'].includes(fsync)) {
    throw new TypeError(`Expected fsync to be terminal, eager or interval, found ${fsync}.`)
  }
  if (!(intervalMs > 0)) throw new TypeError(`Expected intervalMs to be more than 0, found ${intervalMs}.`)
  if (!(maxOpenRuns >= 1)) throw new TypeError(`Expected maxOpenRuns to be at least 1, found ${maxOpenRuns}.`)
}
