import {
  type AcceptedSegment,
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
    for (;;) {
      if ((await waitOrAbort(holds.untilFree(sessionId), ...signals)) === ABORTED) break
      await recorder.transact(sessionId, (state) => requestBoundary(state, 'evict'))
      if (!(await this.#flush(sessionId, signals))) break
      const state = await recorder.read(sessionId)
      if (signals.some((signal) => signal?.aborted === true)) break
      // A turn that began meanwhile keeps its agent open; what it records is flushed too. From here to the closing of
      // the agents everything is synchronous: no turn can slip in between.
      if (holds.isHeld(sessionId)) continue
      this.#release(sessionId, found, state)
      return this.#report(sessionId, found, state)
    }
    return this.#report(sessionId, found, await recorder.read(sessionId))
  }

  /** Tries every segment, once each; a failed one goes on being retried in the background. False if aborted. */
  async #flush(sessionId: string, signals: readonly (AbortSignal | undefined)[]): Promise<boolean> {
    const { committer, flights } = this.#parts
    const tried = new Set<number>()
    const gone = new Set<string | undefined>()
    const [signal] = signals
    for (;;) {
      const before = tried.size
      const commit = committer.commitNext(sessionId, {
        ...{ scope: 'boundary', reason: 'evict', adopter: undefined, impatient: before === 0, tried, gone, signal },
      })
      const outcome = await waitOrAbort(commit, ...signals)
      if (outcome === ABORTED) return false
      if (tried.size > before) continue
      const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
      if (flight === undefined) return true
      if ((await waitOrAbort(flight.landed, ...signals)) === ABORTED) return false
    }
  }

  async #report(sessionId: string, found: readonly AgentHandle[], state: SessionState): Promise<EvictReport> {
    const { flights, owners } = this.#parts
    for (const { closing } of found) await closing
    const inFlight = flights.get(sessionId)?.segment?.from
    const remaining = remainingOf(state, {
      isReachable: (owner) => owners.isReachable(sessionId, owner, new Set()),
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
