import { setMaxListeners } from 'node:events'
import {
  applyBoundaries,
  type Boundary,
  nextWake,
  requestBoundary,
  retryDelay,
  type SessionState,
} from '../core/index.js'
import type { Committer } from './committer.js'
import type { Flights } from './flights.js'
import type { Settings } from './options.js'
import type { StepOutcome } from './outcomes.js'
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
  /** A boundary that came while the pass was running: look once more before it ends (B3). */
  again: boolean
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
  /** Sessions whose work waits for an owner, and the boundary it waits under. */
  readonly #unowned = new Map<string, Boundary>()
  /** Boundaries the ledger could not take yet. */
  readonly #owed = new Map<string, Boundary>()
  /** What came up while paused. */
  readonly #postponed = new Map<string, Boundary | undefined>()
  readonly #closing = new AbortController()
  #pauses = 0
  #failures = 0

  constructor(parts: Parts) {
    this.#parts = parts
    // One listener for each caller that waits.
    setMaxListeners(0, this.closing)
  }

  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** Passes, receipts and recovery under way. */
  get size(): number {
    return this.#running.size
  }

  /** A boundary has come. Nobody waits for it. */
  boundary(sessionId: string, reason: Boundary): void {
    this.track(this.#takeBoundary(sessionId, reason), sessionId)
  }

  /** Commits what the session's boundary covers; `recovery` makes everything of an earlier process part of one. */
  work(sessionId: string, boundary?: Boundary): void {
    if (this.closing.aborted) return
    if (this.#pauses > 0) {
      this.#postponed.set(sessionId, boundary)
      return
    }
    const pass = this.#passes.get(sessionId)
    if (pass !== undefined) {
      pass.again = true
      return
    }
    this.#passes.set(sessionId, { again: false })
    const run = this.#pass(sessionId, boundary).finally(() => this.#passes.delete(sessionId))
    this.track(run, sessionId)
  }

  /** Something of the session is due: a boundary, a retry, a question about a receipt. */
  look(sessionId: string): void {
    if (this.closing.aborted) return
    if (this.#pauses > 0) this.#postponed.set(sessionId, undefined)
    else this.track(this.#look(sessionId), sessionId)
  }

  /** An agent has come: perhaps the one that somebody waits for. */
  agentCame(sessionId: string): void {
    const boundary = this.#unowned.get(sessionId)
    if (boundary === undefined) return
    this.#unowned.delete(sessionId)
    this.work(sessionId, boundary)
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

  /** Resolves when nothing is under way. */
  async untilIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Resolves when fewer than `limit` pieces of background work are under way, or at the end of one of them. */
  async untilBelow(limit: number): Promise<void> {
    if (this.#running.size >= limit) await Promise.race(this.#running)
  }

  forget(sessionId: string): void {
    this.#unowned.delete(sessionId)
    this.#owed.delete(sessionId)
    this.#postponed.delete(sessionId)
  }

  close(): void {
    this.#closing.abort()
  }

  /** Counts a piece of background work; if the ledger fails it, the session is looked at again later. */
  track(work: Promise<void>, sessionId: string): void {
    const { settings, wakes } = this.#parts
    const run = work
      .catch((error: unknown) => {
        if (this.closing.aborted) return
        this.#failures += 1
        settings.logger.error(
          { sessionId, err: settings.describeError(error) },
          'background work failed; it is tried again',
        )
        wakes.schedule(sessionId, settings.clock.now() + retryDelay(this.#failures, settings.retry, settings.random()))
      })
      .finally(() => this.#running.delete(run))
    this.#running.add(run)
  }

  async #takeBoundary(sessionId: string, reason: Boundary): Promise<void> {
    this.#owed.set(sessionId, reason)
    const { result } = await this.#parts.recorder.transact(sessionId, (state) => requestBoundary(state, reason))
    if (this.#owed.get(sessionId) === reason) this.#owed.delete(sessionId)
    if (result) this.work(sessionId)
  }

  async #look(sessionId: string): Promise<void> {
    const { recorder, settings, settler, wakes } = this.#parts
    const owed = this.#owed.get(sessionId)
    if (owed !== undefined) return this.#takeBoundary(sessionId, owed)
    const at = settings.clock.now()
    const { result } = await recorder.transact(sessionId, (state) => {
      const next = applyBoundaries(state, settings.boundaries, at)
      return { state: next, result: next, events: [] }
    })
    this.#failures = 0
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

  async #pass(sessionId: string, first: Boundary | undefined): Promise<void> {
    const { committer, flights } = this.#parts
    const gone = new Set<string | undefined>()
    let boundary = first
    for (;;) {
      if (this.closing.aborted) return
      if (this.#pauses > 0) {
        this.#postponed.set(sessionId, boundary)
        return
      }
      const pass = this.#passes.get(sessionId)
      if (pass !== undefined) pass.again = false
      const tried = new Set<number>()
      const outcome = await committer.commitNext(sessionId, {
        ...{ scope: 'boundary', reason: 'recovery', adopter: undefined, impatient: false, tried, gone },
        ...(boundary === undefined ? {} : { boundary }),
        signal: this.closing,
      })
      if (tried.size > 0) {
        boundary = undefined
        continue
      }
      const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
      if (flight !== undefined) {
        await waitOrAbort(flight.landed, this.closing)
        continue
      }
      this.#noteEnd(sessionId, outcome, first)
      if (pass?.again !== true) return
    }
  }

  #noteEnd(sessionId: string, outcome: StepOutcome, boundary: Boundary | undefined): void {
    if (outcome.status === 'unowned') this.#unowned.set(sessionId, boundary ?? 'recovery')
  }
}

function hasReceipts(state: SessionState): boolean {
  return state.segments.some((segment) => segment.state === 'accepted')
}
