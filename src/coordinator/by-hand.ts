import { type CommitReason, hasUncommittedWork } from '../core/index.js'
import type { MemoryAgent } from './agent.js'
import type { AgentHandle } from './agents.js'
import type { Committer } from './committer.js'
import type { Flights } from './flights.js'
import type { StepOutcome } from './outcomes.js'
import type { Recorder } from './recorder.js'
import type { CommitOutcome, FlushReport } from './reports.js'
import { ABORTED, waitOrAbort } from './wait.js'

export interface CommitOptions {
  /** Takes the segment if nobody owns it yet; never somebody else's. */
  readonly agent?: MemoryAgent
  /** Wait for a commit that is under way, then commit what is left. @default false */
  readonly wait?: boolean
  /** Ends the caller's wait, not a call that has begun. */
  readonly signal?: AbortSignal
  /** @default 'manual' */
  readonly reason?: CommitReason
}

const REASONS: readonly CommitReason[] = Object.freeze([
  ...(['switch', 'evict', 'idle', 'limit', 'rotate', 'shutdown', 'recovery', 'manual'] as const),
])

interface Parts {
  readonly committer: Committer
  readonly flights: Flights
  readonly recorder: Recorder
  /** Aborted when the lifecycle closes. */
  readonly closing: AbortSignal
}

/** Commits that somebody asked for: one attempt a segment, reported as it went, nothing retried (C12). */
export class ByHand {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  async commit(sessionId: string, options: CommitOptions, adopter: AgentHandle | undefined): Promise<CommitOutcome> {
    const { flights, closing } = this.#parts
    const signals = [options.signal, closing]
    for (;;) {
      if (isAborted(signals)) return { status: 'aborted' }
      const outcome = await waitOrAbort(this.#tryOnce(sessionId, options, adopter, new Set()), ...signals)
      if (outcome === ABORTED) return { status: 'aborted' }
      const flight = outcome.status === 'busy' && options.wait === true ? flights.get(sessionId) : undefined
      if (flight === undefined) return outcome.status === 'waiting' ? { status: 'busy' } : outcome
      await waitOrAbort(flight.landed, ...signals)
    }
  }

  /** Segment after segment, each once, until the session is clean or nothing progresses (C15). */
  async flush(sessionId: string, options: CommitOptions): Promise<FlushReport> {
    const { flights, recorder, closing } = this.#parts
    const counts = { committed: 0, accepted: 0, failed: 0, parked: 0 }
    const signals = [options.signal, closing]
    const tried = new Set<number>()
    while (!isAborted(signals)) {
      const before = tried.size
      const outcome = await waitOrAbort(this.#tryOnce(sessionId, options, undefined, tried), ...signals)
      if (outcome === ABORTED) break
      if (tried.size > before) {
        if (outcome.status in counts) counts[outcome.status as keyof typeof counts] += 1
        continue
      }
      const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
      if (flight === undefined) break
      await waitOrAbort(flight.landed, ...signals)
    }
    return { ...counts, clean: !hasUncommittedWork(await recorder.read(sessionId)) }
  }

  #tryOnce(
    sessionId: string,
    options: CommitOptions,
    adopter: AgentHandle | undefined,
    tried: Set<number>,
  ): Promise<StepOutcome> {
    const { reason = 'manual', signal } = options
    checkReason(reason)
    const gone = new Set<string | undefined>()
    return this.#parts.committer.commitNext(sessionId, {
      scope: 'all',
      reason,
      adopter,
      impatient: true,
      tried,
      gone,
      signal,
    })
  }
}

function isAborted(signals: readonly (AbortSignal | undefined)[]): boolean {
  return signals.some((signal) => signal?.aborted === true)
}

/** It is recorded with the segment: a ledger must know it again. */
function checkReason(reason: CommitReason): void {
  if (REASONS.includes(reason)) return
  throw new TypeError(`reason must be one of ${REASONS.join(', ')}, but is ${JSON.stringify(reason)}.`)
}
