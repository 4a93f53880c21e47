import { allSegments, hasUncommittedWork, nextWake, retryDelay, type SessionState } from '../core/index.js'
import type { Background } from './background.js'
import type { Events } from './events.js'
import type { Settings } from './options.js'
import type { Wakes } from './wakes.js'

/** More than this is not begun at once: what waits costs memory, and the oldest goes first. */
const WINDOW = 1024

interface Parts {
  readonly settings: Settings
  readonly background: Background
  readonly events: Events
  readonly wakes: Wakes
}

/** Takes up what earlier processes left: work goes to its owners, oldest first; receipts go on being settled (R1). */
export class Recovery {
  readonly #parts: Parts
  /** The first turn of each session that this process recorded while the recovery was looking. */
  #own: Map<string, number> | undefined
  #cancelRetry: () => void = () => undefined

  constructor(parts: Parts) {
    this.#parts = parts
    if (parts.settings.ledger.supports.persistent) this.#own = new Map()
  }

  /** Recovers in the background, and again if the ledger fails meanwhile. */
  start(tries = 1): void {
    const { ledger, logger, clock, retry, random, describeError } = this.#parts.settings
    const { closing } = this.#parts.background
    if (!ledger.supports.persistent) return
    // One turn of the event loop later, so that whoever opened us can listen first.
    setImmediate(() => {
      if (closing.aborted) return
      this.#recoverAll().catch((error: unknown) => {
        if (closing.aborted) return
        logger.error({ err: describeError(error) }, 'the recovery of earlier work failed; it is tried again')
        this.#cancelRetry = clock.setTimer(() => this.start(tries + 1), retryDelay(tries, retry, random()))
      })
    })
  }

  close(): void {
    this.#cancelRetry()
  }

  /** A turn of this process waits for a boundary like any other, also if the recovery comes across it. */
  noteRecorded(sessionId: string, generation: number): void {
    if (this.#own?.has(sessionId) === false) this.#own.set(sessionId, generation)
  }

  async #recoverAll(): Promise<void> {
    const { settings, background } = this.#parts
    let sessions = 0
    for await (const { sessionId, state } of settings.ledger.sessions('unfinished')) {
      if (background.closing.aborted) return
      if (!this.#isEarlier(sessionId, state)) continue
      sessions += 1
      await this.#recover(sessionId, state)
    }
    this.#own = undefined
    if (sessions > 0) settings.logger.info({ sessions }, 'took up the unfinished work of earlier processes')
  }

  #isEarlier(sessionId: string, state: SessionState): boolean {
    const [oldest] = allSegments(state)
    return oldest !== undefined && oldest.from <= this.#lastEarlier(sessionId, state)
  }

  /** The newest generation that an earlier process recorded. */
  #lastEarlier(sessionId: string, state: SessionState): number {
    const own = this.#own?.get(sessionId)
    return own === undefined ? state.generation : own - 1
  }

  async #recover(sessionId: string, state: SessionState): Promise<void> {
    const { settings, background, events, wakes } = this.#parts
    const through = this.#lastEarlier(sessionId, state)
    const segments = allSegments(state).filter(({ from }) => from <= through)
    const from = segments[0]?.from ?? through
    const to = Math.min(segments.at(-1)?.to ?? through, through)
    events.emit('session:recovered', { sessionId, from, to, segments: segments.length })
    const wakeAt = nextWake(state, settings.boundaries)
    if (wakeAt !== undefined) wakes.schedule(sessionId, wakeAt)
    if (!hasUncommittedWork(state)) return
    await background.untilBelow(WINDOW)
    background.work(sessionId, { reason: 'recovery', through })
  }
}
