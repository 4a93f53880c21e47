import {
  type AcceptedSegment,
  answer,
  hasUncommittedWork,
  isFinished,
  requestBoundary,
  type SessionState,
} from '../core/index.js'
import type { MemoryAgent } from './agent.js'
import type { AgentHandle, Agents } from './agents.js'
import type { Committer } from './committer.js'
import type { Events } from './events.js'
import type { Flights } from './flights.js'
import type { Holds } from './holds.js'
import type { Settings } from './options.js'
import type { Owners } from './owners.js'
import type { Recorder } from './recorder.js'
import { remainingOf } from './remaining.js'
import type { EvictReport } from './reports.js'
import { ABORTED, waitOrAbort } from './wait.js'

interface Parts {
  readonly settings: Settings
  readonly agents: Agents
  readonly owners: Owners
  readonly events: Events
  readonly recorder: Recorder
  readonly committer: Committer
  readonly flights: Flights
  readonly holds: Holds
}

/** What one eviction remembers: it tries each segment once, however often it has to look. */
interface Attempts {
  readonly tried: Set<number>
  readonly gone: Set<string | undefined>
}

/** Flushes a session's work, then closes and forgets its agents (B4, B5). */
export class Evictor {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Closes what it finds at its start: the agents of the session, or the one it is told of if that is still open. */
  async evict(
    sessionId: string,
    signals: readonly (AbortSignal | undefined)[],
    only: MemoryAgent | undefined,
  ): Promise<EvictReport> {
    const { agents, recorder, holds } = this.#parts
    const found = only === undefined ? agents.all(sessionId) : agents.known(only)
    const attempts: Attempts = { tried: new Set(), gone: new Set() }
    for (;;) {
      if ((await waitOrAbort(holds.untilFree(sessionId), ...signals)) === ABORTED) break
      const { state: bounded } = await recorder.transact(sessionId, (state) => requestBoundary(state, 'evict'))
      if (!(await this.#flush(sessionId, signals, attempts))) break
      const state = await this.#tryRelease(sessionId, found, bounded.generation, signals)
      if (state !== undefined) {
        for (const { closing } of found) if (closing !== undefined) await waitOrAbort(closing, ...signals)
        return this.#report(sessionId, found, state, attempts)
      }
      if (isAborted(signals)) break
    }
    return this.#report(sessionId, found, await recorder.read(sessionId), attempts)
  }

  /** Tries every segment, once each; a failed one goes on being retried in the background. False if aborted. */
  async #flush(
    sessionId: string,
    signals: readonly (AbortSignal | undefined)[],
    { tried, gone }: Attempts,
  ): Promise<boolean> {
    const { committer, flights } = this.#parts
    const [signal] = signals
    for (;;) {
      const before = tried.size
      const commit = committer.commitNext(sessionId, {
        scope: 'boundary',
        reason: 'evict',
        adopter: undefined,
        impatient: before === 0,
        tried,
        gone,
        signal,
      })
      const outcome = await waitOrAbort(commit, ...signals)
      if (outcome === ABORTED) return false
      if (tried.size > before) continue
      const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
      if (flight === undefined) return true
      if ((await waitOrAbort(flight.landed, ...signals)) === ABORTED) return false
    }
  }

  #report(sessionId: string, found: readonly AgentHandle[], state: SessionState, { gone }: Attempts): EvictReport {
    const { flights, owners } = this.#parts
    const inFlight = flights.get(sessionId)?.segment?.from
    const remaining = remainingOf(state, {
      isReachable: (owner) => owners.isReachable(sessionId, owner, gone),
      isInFlight: (from) => from === inFlight,
    })
    const unsettled = state.segments
      .filter((segment): segment is AcceptedSegment => segment.state === 'accepted')
      .map(({ from, to }) => ({ from, to, reason: 'unsettled' as const }))
    return {
      closed: found.length > 0 && found.every((handle) => handle.closing !== undefined),
      clean: !hasUncommittedWork(state),
      remaining: [...remaining, ...unsettled],
    }
  }

  /**
   * Closes the agents in the same breath in which the state is known: a turn that comes later keeps its agent open by
   * itself. Not if a turn began or was recorded meanwhile: that is flushed first.
   */
  async #tryRelease(
    sessionId: string,
    found: readonly AgentHandle[],
    flushed: number,
    signals: readonly (AbortSignal | undefined)[],
  ): Promise<SessionState | undefined> {
    const { recorder, holds } = this.#parts
    let released: SessionState | undefined
    await recorder.transact(
      sessionId,
      (state) => answer(state, state),
      (state) => {
        if (isAborted(signals) || holds.isHeld(sessionId) || state.generation > flushed) return
        this.#release(sessionId, found, state)
        released = state
      },
    )
    return released
  }

  #release(sessionId: string, found: readonly AgentHandle[], state: SessionState): void {
    const { agents, events, settings } = this.#parts
    const current = agents.current(sessionId)
    if (current !== undefined && found.includes(current)) {
      agents.unregister(sessionId)
      events.emit('agent:unregistered', { sessionId, agentId: current.id })
    }
    agents.prune(sessionId, state)
    // What can be rebuilt under its own name need not stay open for work that is left.
    if (!isFinished(state) && settings.revive !== undefined) {
      agents.dismiss(
        sessionId,
        found.filter((handle) => handle.isNamed),
      )
    }
    for (const handle of found) agents.doom(handle)
  }
}

function isAborted(signals: readonly (AbortSignal | undefined)[]): boolean {
  return signals.some((signal) => signal?.aborted === true)
}
