import { TidemarkError } from '../base/errors.js'
import { checkId } from '../base/ids.js'
import {
  answer,
  applyBoundaries,
  type Decision,
  nextWake,
  recordTurn,
  type SessionState,
  type Turn,
} from '../core/index.js'
import type { MemoryAgent } from './agent.js'
import type { AgentHandle, Agents } from './agents.js'
import { encodeMessages } from './messages.js'
import type { Newcomer, Newcomers } from './newcomers.js'
import type { Settings } from './options.js'
import type { Recorder } from './recorder.js'
import { ABORTED, waitOrAbort } from './wait.js'

export interface MarkOptions {
  /** Who completed the turn; becomes the current agent. The current agent by default. */
  readonly agent?: MemoryAgent
  /** The turn's own messages: anything that survives JSON. Kept until the turn is committed. */
  readonly messages?: readonly unknown[]
  /** The host's name for the turn: marking it again while it is uncommitted gives the same generation. */
  readonly turnId?: string
  /** The turn is not to be remembered: nothing is recorded. */
  readonly ephemeral?: boolean
  /** Bounds the wait for a ledger that is away. */
  readonly signal?: AbortSignal
}

interface Parts {
  readonly settings: Settings
  readonly agents: Agents
  readonly recorder: Recorder
  readonly newcomers: Newcomers
  /** Told of every turn that was recorded just now. */
  readonly onRecorded: (sessionId: string, state: SessionState, owner: AgentHandle | undefined) => void
}

/** Records completed turns. This is the hot path: one transition, one promise more, no lock. */
export class Marker {
  readonly #parts: Parts
  readonly #hasBoundaries: boolean

  constructor(parts: Parts) {
    this.#parts = parts
    const { idleMs, maxTurns, maxAgeMs } = parts.settings.boundaries
    this.#hasBoundaries = idleMs !== undefined || maxTurns !== undefined || maxAgeMs !== undefined
  }

  mark(sessionId: string, options: MarkOptions): Promise<number> {
    const { settings, agents, recorder, newcomers } = this.#parts
    const { agent, messages, turnId, signal } = options
    if (options.ephemeral === true) return this.#bound(this.#readGeneration(sessionId), signal)
    if (turnId !== undefined) checkId(turnId, 'turnId')
    const json = messages === undefined ? undefined : encodeMessages(messages)
    let handle = agents.ownerOfNext(sessionId)
    if (agent !== undefined && handle?.agent !== agent) handle = agents.handleOf(agent)
    const newcomer = agent === undefined || handle === undefined ? undefined : newcomers.come(sessionId, handle, turnId)
    // Until it is known to own the turn: an eviction must not close it in between.
    if (handle !== undefined) agents.pin(handle)
    const turn: Turn = { owner: handle?.id, at: settings.clock.now(), turnId, messages: json }
    const recorded = settings.ledger
      .transact(sessionId, (state) => this.#decide(state, turn))
      .then(
        (decision) => this.#recorded(sessionId, handle, newcomer, decision),
        (error: unknown) => {
          if (newcomer !== undefined) newcomers.conclude(sessionId, newcomer, 'failed')
          if (handle !== undefined) {
            // The turn may be recorded all the same: the next look at the session knows whether it owns that.
            agents.keep(sessionId, handle)
            agents.unpin(handle)
          }
          recorder.noteFailed(sessionId)
          throw error
        },
      )
    return this.#bound(recorded, signal)
  }

  #decide(state: SessionState, turn: Turn): Decision<number> {
    const decision = recordTurn(state, turn)
    if (!this.#hasBoundaries || decision.state === state) return decision
    const { boundaries } = this.#parts.settings
    const next = applyBoundaries(decision.state, boundaries, turn.at)
    const wakeAt = nextWake(next, boundaries)
    return { ...decision, state: next, ...(wakeAt === undefined ? {} : { wakeAt }) }
  }

  #recorded(
    sessionId: string,
    handle: AgentHandle | undefined,
    newcomer: Newcomer | undefined,
    decision: Decision<number>,
  ): number {
    const { agents, recorder, newcomers, onRecorded } = this.#parts
    // A turn id that was known is no new turn.
    const isNew = decision.events.length > 0
    if (newcomer !== undefined) newcomers.conclude(sessionId, newcomer, isNew ? 'new' : 'known')
    if (handle !== undefined) agents.noteOwner(sessionId, handle, decision.state)
    recorder.noteDurable(sessionId, decision)
    if (isNew) onRecorded(sessionId, decision.state, handle)
    if (handle !== undefined) agents.unpin(handle)
    return decision.result
  }

  async #readGeneration(sessionId: string): Promise<number> {
    const { result } = await this.#parts.settings.ledger.transact(sessionId, (state) => answer(state, state.generation))
    return result
  }

  #bound(recorded: Promise<number>, signal: AbortSignal | undefined): Promise<number> {
    if (signal === undefined) return recorded
    return waitOrAbort(recorded, signal).then((generation) => {
      if (generation !== ABORTED) return generation
      throw new TidemarkError(
        'ABORTED',
        'The wait for the ledger was ended by the caller’s signal; the turn may or may not have been recorded. ' +
          'Mark it again with the same turnId: it is counted once.',
      )
    })
  }
}
