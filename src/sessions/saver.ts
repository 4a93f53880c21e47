import type { Loaded } from './loaded-sessions.js'
import type { StoreSettings } from './options.js'
import type { SessionIndex } from './session-index.js'
import type { FlushReport, SaveOptions, Session } from './types.js'

const FLUSHES_AT_ONCE = 16

/** Writes sessions and their index entries, and tells the journal which runs a transcript holds for good. */
export class Saver {
  readonly #settings: StoreSettings
  readonly #index: SessionIndex

  constructor(settings: StoreSettings, index: SessionIndex) {
    this.#settings = settings
    this.#index = index
  }

  async save(loaded: Loaded, options: SaveOptions): Promise<void> {
    const { finishedRuns } = loaded.file
    await this.write(loaded, options)
    if (options.fsync === true) await this.markSaved(loaded, finishedRuns)
  }

  /** What is written is the session as it is now: nothing here waits before `file.save` has taken it. */
  async write(loaded: Loaded, options: SaveOptions): Promise<void> {
    const { fsync = false, index = true, touch = true, truncate = false } = options
    const { session, file } = loaded
    const { updatedAt } = session
    if (touch) session.updatedAt = this.#settings.clock.now()
    let writing: Promise<unknown>
    try {
      writing = file.save(session, { durable: fsync, truncate })
    } catch (error) {
      session.updatedAt = updatedAt
      throw error
    }
    const indexing = index ? this.putIndex(session) : undefined
    await writing
    await indexing
  }

  /** The index only repeats what the file says, so a save does not fail for it. */
  async putIndex(session: Session): Promise<void> {
    try {
      await this.#index.put(session)
    } catch (error) {
      this.#settings.logger.error({ err: error, sessionId: session.id }, 'the session index could not be written')
    }
  }

  /** Saves all of them durably; goes on past one that fails. */
  async flush(sessions: readonly Loaded[]): Promise<FlushReport> {
    const { logger } = this.#settings
    const waiting = [...sessions]
    const failed: { id: string; error: unknown }[] = []
    let flushed = 0
    const flushNext = async (): Promise<void> => {
      for (let loaded = waiting.pop(); loaded !== undefined; loaded = waiting.pop()) {
        try {
          await this.#flushOne(loaded)
          flushed += 1
        } catch (error) {
          const { id } = loaded.session
          logger.error({ err: error, sessionId: id }, 'a session could not be flushed')
          failed.push({ id, error })
        }
      }
    }
    await Promise.all(Array.from({ length: FLUSHES_AT_ONCE }, flushNext))
    await this.#index
      .sync()
      .catch((error: unknown) => logger.error({ err: error }, 'the session index could not be flushed'))
    return { flushed, failed }
  }

  /** Before a session leaves memory: its finished runs are marked, so that their journals do not stay for ever. */
  async putAway(loaded: Loaded): Promise<void> {
    const { session, file } = loaded
    try {
      if (file.finishedRuns.length > 0 && file.exists) {
        await file.sync()
        await this.markSaved(loaded, file.finishedRuns)
      }
    } catch (error) {
      this.#settings.logger.error({ err: error, sessionId: session.id }, 'a session could not be synced')
    }
    await file.close()
  }

  async #flushOne(loaded: Loaded): Promise<void> {
    const { session, file } = loaded
    if (file.isDurable(session)) await this.markSaved(loaded, file.finishedRuns)
    else await this.save(loaded, { fsync: true, touch: file.hasChanges(session) })
  }

  /** The transcript holds these runs on stable storage: their journals may go when retention says so. */
  async markSaved({ session, file }: Loaded, runs: readonly string[]): Promise<void> {
    const { journal, logger } = this.#settings
    for (const runId of runs) {
      try {
        await journal?.markSaved(session.id, runId)
      } catch (error) {
        logger.error({ err: error, sessionId: session.id, runId }, 'a journal could not be marked as saved')
      }
    }
    file.finishedRuns = file.finishedRuns.filter((runId) => !runs.includes(runId))
  }
}
