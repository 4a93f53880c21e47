import type { Clock } from '../base/clock.js'
import type { Logger } from '../base/logger.js'
import type { SessionLocks } from './session-locks.js'

export interface CheckpointerOptions {
  readonly everyMs: number
  readonly clock: Clock
  readonly logger: Logger
  readonly locks: SessionLocks
  /** Saves the session; called under its lock. */
  readonly save: (sessionId: string) => Promise<void>
  readonly onStop: (checkpointer: Checkpointer) => void
}

/**
 * Saves a running session while it works. What counts is activity (a completed tool call, a finished step), not the
 * number of messages: without activity there is no timer and no write.
 */
export class Checkpointer {
  readonly #options: CheckpointerOptions
  /** Follows the session when its id rotates. */
  sessionId: string
  #activity = 0
  #written = 0
  #stopped = false
  #cancelTimer: (() => void) | undefined
  /** The write that holds the lock now. One that only waits for the lock does nothing after `stop`. */
  #writing: Promise<void> | undefined

  constructor(sessionId: string, options: CheckpointerOptions) {
    this.sessionId = sessionId
    this.#options = options
  }

  /** Something worth keeping has happened. */
  activity(): void {
    if (this.#stopped) return
    this.#activity += 1
    this.#arm()
  }

  /** Waits for a write in progress; after that nothing is written any more. */
  async stop(): Promise<void> {
    this.#stopped = true
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#options.onStop(this)
    await this.#writing
  }

  #arm(): void {
    const { clock, everyMs } = this.#options
    this.#cancelTimer ??= clock.setTimer(() => void this.#checkpoint(), everyMs)
  }

  async #checkpoint(): Promise<void> {
    const { locks, logger, save } = this.#options
    try {
      await locks.runDetached(this.sessionId, async () => {
        if (this.#stopped) return
        const activity = this.#activity
        const saving = save(this.sessionId)
        this.#writing = saving.then(
          () => undefined,
          () => undefined,
        )
        await saving
        this.#written = activity
      })
    } catch (error) {
      logger.error({ err: error, sessionId: this.sessionId }, 'a checkpoint failed; the run goes on')
    } finally {
      this.#writing = undefined
      this.#cancelTimer = undefined
      if (!this.#stopped && this.#activity > this.#written) this.#arm()
    }
  }
}
