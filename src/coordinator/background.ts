import { setMaxListeners } from 'node:events'
import {
  applyBoundaries,
  type Boundary,
  nextWake,
  type PendingBoundary,
  requestBoundary,
  retryDelay,
  type SessionState,
} from '../core/index.js'
import type { Committer } from './committer.js'
import type { Flights } from './flights.js'
import type { Settings } from './options.js'
import type { Recorder } from './recorder.js'
import type { Settler } from './settler.js'
import { waitOrAbort } from './wait.js'
import type { Wakes } from './wakes.js'

interface Parts {
  readonly settings: Settings
  readonly recorder: Recorder
  readonly committer: Committer
  readonly settler: Settler
  readonly flights: Flights
  readonly wakes: Wakes
}

interface Pass {
  /** A boundary or an agent came while the pass was running: look once more before it ends (B3). */
  again: boolean
  /** A boundary that is not in the ledger yet. */
  boundary: PendingBoundary | undefined
}

/**
 * What goes on behind the callers' backs: boundaries, retries, receipts. One pass a session at a time; each commits what
 * the session's boundary covers, segment by segment, until nothing is left that can be done now. Passes are counted, so
 * that a drain can wait for them.
 */
export class Background {
  readonly #parts: Parts
  readonly #passes = new Map<string, Pass>()
  readonly #running = new Set<Promise<void>>()
  /** Sessions whose work waits for an owner, and the boundary it waits under if that is not in the ledger. */
  readonly #unowned = new Map<string, PendingBoundary | undefined>()
  /** Boundaries the ledger could not take yet. */
  readonly #owed = new Map<string, PendingBoundary>()
  /** What came up while paused. */
  readonly #postponed = new Map<string, PendingBoundary | undefined>()
  readonly #closing = new AbortController()
  /** How often in a row the ledger failed a session. */
  readonly #failures = new Map<string, number>()
  #pauses = 0

  constructor(parts: Parts) {
    this.#parts = parts
    // One listener for each caller that waits.
    setMaxListeners(0, this.closing)
  }

  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** A boundary has come. Nobody waits for it. */
  boundary(sessionId: string, reason: Boundary): void {
    this.track(this.#takeBoundary(sessionId, { reason, through: Infinity }), sessionId)
  }

  /** Commits what the session's boundary covers, or one that is still to be requested. */
  work(sessionId: string, boundary?: PendingBoundary): void {
    if (this.closing.aborted) return
    if (this.#pauses > 0) {
      this.#postpone(sessionId, boundary)
      return
    }
    const running = this.#passes.get(sessionId)
    if (running !== undefined) {
      running.again = true
      running.boundary ??= boundary
      return
    }
    const pass: Pass = { again: false, boundary: boundary ?? this.#unowned.get(sessionId) }
    this.#unowned.delete(sessionId)
    this.#passes.set(sessionId, pass)
    this.track(this.#pass(sessionId, pass), sessionId)
  }

  /** Something of the session is due: a boundary, a retry, a question about a receipt. */
  look(sessionId: string): void {
    if (this.closing.aborted) return
    if (this.#pauses > 0) this.#postpone(sessionId, undefined)
    else this.track(this.#look(sessionId), sessionId)
  }

  /** An agent has come: perhaps the one that somebody waits for. */
  agentCame(sessionId: string): void {
    const pass = this.#passes.get(sessionId)
    // It may have looked for the owner just before.
    if (pass !== undefined) pass.again = true
    else if (this.#unowned.has(sessionId)) this.work(sessionId)
  }

  /** Looks at the session again after a moment: something of it was left undone. */
  lookLater(sessionId: string): void {
    const { settings, wakes } = this.#parts
    if (this.closing.aborted) return
    wakes.schedule(
      sessionId,
      settings.clock.now() + retryDelay(this.#failures.get(sessionId) ?? 1, settings.retry, settings.random()),
    )
  }

  /** While a drain runs it does the work itself (D4). */
  pause(): () => void {
    this.#pauses += 1
    return () => {
      this.#pauses -= 1
      if (this.#pauses > 0) return
      const postponed = [...this.#postponed]
      this.#postponed.clear()
      for (const [sessionId, boundary] of postponed) {
        this.work(sessionId, boundary)
        this.look(sessionId)
      }
    }
  }

  /** Resolves when fewer than `limit` pieces of background work are under way, or at the end of one of them. */
  async untilBelow(limit: number): Promise<void> {
    if (this.#running.size >= limit) await Promise.race(this.#running)
  }

  forget(sessionId: string): void {
    this.#unowned.delete(sessionId)
    this.#owed.delete(sessionId)
    this.#postponed.delete(sessionId)
    this.#failures.delete(sessionId)
  }

  close(): void {
    this.#closing.abort()
  }

  /** Counts a piece of background work; if the ledger fails it, the session is looked at again later. */
  track(work: Promise<void>, sessionId: string): void {
    const { settings } = this.#parts
    const run = work
      .catch((error: unknown) => {
        if (this.closing.aborted) return
        this.#failures.set(sessionId, (this.#failures.get(sessionId) ?? 0) + 1)
        settings.logger.error(
          { sessionId, err: settings.describeError(error) },
          'background work failed; it is tried again',
        )
        this.lookLater(sessionId)
      })
      .finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #takeBoundary(sessionId: string, boundary: PendingBoundary): Promise<void> {
    const { reason, through } = boundary
    this.#owed.set(sessionId, boundary)
    const { result } = await this.#parts.recorder.transact(sessionId, (state) =>
      requestBoundary(state, reason, through),
    )
    if (this.#owed.get(sessionId) === boundary) this.#owed.delete(sessionId)
    if (result) this.work(sessionId)
  }

  async #look(sessionId: string): Promise<void> {
    const { recorder, settings, settler, wakes } = this.#parts
    const owed = this.#owed.get(sessionId)
    if (owed !== undefined) await this.#takeBoundary(sessionId, owed)
    const at = settings.clock.now()
    const { result } = await recorder.transact(sessionId, (state) => {
      const next = applyBoundaries(state, settings.boundaries, at)
      return { state: next, result: next, events: [] }
    })
    this.#failures.delete(sessionId)
    const wakeAt = nextWake(result, settings.boundaries)
    // Woken before its time: the session has moved on since the wake-up was set.
    if (wakeAt !== undefined && wakeAt > settings.clock.now()) wakes.schedule(sessionId, wakeAt)
    if (result.boundary !== undefined) this.work(sessionId)
    if (!hasReceipts(result)) return
    await settler.settleDue(sessionId)
    const settled = await recorder.read(sessionId)
    // In strict order an unsettled segment held up what follows it.
    if (settled.boundary !== undefined) this.work(sessionId)
  }

  #postpone(sessionId: string, boundary: PendingBoundary | undefined): void {
    this.#postponed.set(sessionId, boundary ?? this.#postponed.get(sessionId))
  }

  async #pass(sessionId: string, pass: Pass): Promise<void> {
    const { committer, flights } = this.#parts
    const gone = new Set<string | undefined>()
    try {
      for (;;) {
        if (this.closing.aborted) return
        if (this.#pauses > 0) {
          this.#postpone(sessionId, pass.boundary)
          return
        }
        pass.again = false
        const { boundary } = pass
        const tried = new Set<number>()
        const outcome = await committer.commitNext(sessionId, {
          scope: 'boundary',
          reason: 'recovery',
          adopter: undefined,
          impatient: false,
          tried,
          gone,
          ...(boundary === undefined ? {} : { boundary }),
          signal: this.closing,
        })
        if (tried.size > 0) {
          // The claim has put it into the ledger.
          if (pass.boundary === boundary) pass.boundary = undefined
          continue
        }
        const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
        if (flight !== undefined) {
          await waitOrAbort(flight.landed, this.closing)
          continue
        }
        if (isCalledAgain(pass)) continue
        if (outcome.status === 'unowned') this.#unowned.set(sessionId, pass.boundary)
        return
      }
    } catch (error) {
      if (pass.boundary !== undefined && !this.#owed.has(sessionId)) this.#owed.set(sessionId, pass.boundary)
      throw error
    } finally {
      // In the same breath as the last look: whoever comes later begins another pass.
      this.#passes.delete(sessionId)
    }
  }
}

function isCalledAgain(pass: Pass): boolean {
  return pass.again
}

function hasReceipts(state: SessionState): boolean {
  return state.segments.some((segment) => segment.state === 'accepted')
}
