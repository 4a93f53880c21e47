import { randomUUID } from 'node:crypto'
import {
  adopt,
  answer,
  type ClaimedSegment,
  type ClaimRequest,
  type ClaimResult,
  claimSegment,
  type CommitReason,
  type Decision,
  type PendingBoundary,
  requestBoundary,
  type SessionState,
} from '../core/index.js'
import type { AgentHandle } from './agents.js'
import { readCommitAnswer } from './answers.js'
import { ProviderCall } from './call.js'
import { type ConclusionParts, Conclusions, type Offered } from './conclusions.js'
import type { Flight } from './flights.js'
import { commitOf, outcomeOf, type StepOutcome } from './outcomes.js'
import type { Owners } from './owners.js'
import type { Slot } from './slots.js'

export interface CommitRequest {
  readonly scope: 'boundary' | 'all'
  readonly reason: CommitReason
  /** A boundary to request together with the claim: what fails is then retried by the coordinator. */
  readonly boundary?: PendingBoundary
  /** Who takes a segment that nobody owns yet; the current agent by default. */
  readonly adopter: AgentHandle | undefined
  readonly impatient: boolean
  /** First generations of the segments this caller has tried already. */
  readonly tried: Set<number>
  /** Owners that `revive` had nothing for. */
  readonly gone: Set<string | undefined>
  /** Ends the wait for a slot. */
  readonly signal: AbortSignal | undefined
}

interface Parts extends ConclusionParts {
  readonly owners: Owners
}

const UNKNOWN_PROVIDER = 'unknown'

/**
 * Commits one segment: slot → claim (durable) → owner → provider, outside of every lock → conclusion (durable).
 */
export class Committer {
  readonly #parts: Parts
  readonly #conclusions: Conclusions
  #isClosed = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#conclusions = new Conclusions(parts)
  }

  close(): void {
    this.#isClosed = true
  }

  /** Busy at once if the session has a flight (C7); everything up to that is synchronous. */
  async commitNext(sessionId: string, request: CommitRequest): Promise<StepOutcome> {
    const { flights } = this.#parts
    if (flights.get(sessionId) !== undefined) return { status: 'busy' }
    const flight = flights.start(sessionId)
    let outcome: StepOutcome | undefined
    try {
      outcome = await this.#fly(flight, request)
      return outcome
    } finally {
      flights.end(flight, outcome)
    }
  }

  async #fly(flight: Flight, request: CommitRequest): Promise<StepOutcome> {
    for (;;) {
      const slot = await this.#takeSlot(flight.sessionId, request)
      if ('status' in slot) return slot
      try {
        const outcome = await this.#offer(flight, slot, request)
        if (outcome !== 'again') return outcome
      } finally {
        flight.segment = undefined
        flight.isClaiming = false
        slot.release()
      }
    }
  }

  /** A session with nothing to commit never waits for a slot to be told so. */
  async #takeSlot(sessionId: string, request: CommitRequest): Promise<Slot | StepOutcome> {
    const { agents, slots, recorder, settings } = this.#parts
    const free = slots.take(agents.all(sessionId)[0]?.provider ?? UNKNOWN_PROVIDER)
    if (free !== undefined) return free
    const trial = { key: '', at: settings.clock.now() }
    const { result } = await recorder.transact(sessionId, (state) =>
      answer(state, this.#claim(sessionId, state, request, trial).result),
    )
    if (result.status !== 'claimed') return outcomeOf(result)
    const { owner } = result.segment
    const handle = owner === undefined ? undefined : agents.find(sessionId, owner)
    const slot = await slots.acquire(handle?.provider ?? UNKNOWN_PROVIDER, request.signal)
    return slot ?? { status: 'aborted' }
  }

  #claim(
    sessionId: string,
    state: SessionState,
    request: CommitRequest,
    { key, at }: Pick<ClaimRequest, 'key' | 'at'>,
  ): Decision<ClaimResult> {
    const { settings, owners, agents } = this.#parts
    const { ledger } = settings
    const { boundary } = request
    const bounded = boundary === undefined ? state : requestBoundary(state, boundary.reason, boundary.through).state
    const decision = claimSegment(bounded, {
      instance: ledger.instance,
      key,
      at,
      scope: request.scope,
      reason: request.reason,
      attemptsAllowed: settings.retry.attempts,
      order: settings.order,
      adopter: (request.adopter ?? agents.ownerOfNext(sessionId))?.id,
      isReachable: (owner) =>
        (owner !== undefined && owner === request.adopter?.id) || owners.isReachable(sessionId, owner, request.gone),
      // This process has one flight a session, and this is it: a claim of its own has no call behind it.
      isUnderWay: ({ instance }) => instance !== ledger.instance && ledger.isAlive(instance),
      tried: request.tried,
      impatient: request.impatient,
    })
    // The boundary alone is not worth a write: it comes again with the next request.
    return decision.state === bounded ? { ...decision, state } : decision
  }

  async #offer(flight: Flight, slot: Slot, request: CommitRequest): Promise<StepOutcome | 'again'> {
    const { recorder, agents, settings, slots } = this.#parts
    const { sessionId } = flight
    await recorder.recordKept(sessionId)
    if (this.#hasClosed()) return { status: 'aborted' }
    const fresh = { key: randomUUID(), at: settings.clock.now() }
    flight.isClaiming = true
    let standby: AgentHandle | undefined
    const { result } = await recorder.transact(sessionId, (state) => {
      standby = agents.ownerOfNext(sessionId)
      return this.#claim(sessionId, state, request, fresh)
    })
    if (result.status !== 'claimed') return outcomeOf(result)
    // Whoever closed us gives the claim back.
    if (this.#hasClosed()) return { status: 'aborted' }
    const { segment } = result
    request.tried.add(segment.from)
    flight.segment = segment

    const live = this.#liveOwner(sessionId, segment, request.adopter, standby)
    let pinned: AgentHandle | undefined
    const call = new ProviderCall<Offered>(
      async (self) => {
        const handle = live ?? (await this.#revive(sessionId, segment, self))
        if (handle === undefined) return 'gone'
        // A revived owner's provider is known only now: it keeps to its share like any other.
        if (live === undefined && handle.isNamed && !slots.hasRoomFor(handle.provider)) return 'crowded'
        slot.moveTo(handle.provider)
        agents.pin(handle)
        pinned = handle
        return this.#ask(handle, sessionId, segment, self)
      },
      { clock: settings.clock, timeoutMs: settings.commitTimeoutMs, graceMs: settings.abandonGraceMs },
    )
    flight.abort = (cause) => call.abort(cause)
    try {
      return await this.#conclusions.conclude(flight, segment, call, await call.result, request)
    } finally {
      if (pinned !== undefined) agents.unpin(pinned)
      flight.abort = () => undefined
    }
  }

  /** Asked anew after each await. */
  #hasClosed(): boolean {
    return this.#isClosed
  }

  #liveOwner(
    sessionId: string,
    segment: ClaimedSegment,
    adopter: AgentHandle | undefined,
    standby: AgentHandle | undefined,
  ): AgentHandle | undefined {
    const { agents } = this.#parts
    if (segment.owner === undefined) return undefined
    // Of several objects with one id, the one given last is called (L11).
    const live = adopter?.id === segment.owner ? adopter : agents.find(sessionId, segment.owner)
    // The agent that was the current one when the work became its own may have been replaced since.
    const owner = live ?? (standby?.id === segment.owner && standby.closing === undefined ? standby : undefined)
    if (owner !== undefined && owner !== agents.find(sessionId, segment.owner)) agents.keep(sessionId, owner)
    return owner
  }

  /** An owner for work that never had one is recorded before it is called (C2). */
  async #revive(
    sessionId: string,
    segment: ClaimedSegment,
    call: ProviderCall<Offered>,
  ): Promise<AgentHandle | undefined> {
    const { owners, recorder } = this.#parts
    const handle = await owners.revive(sessionId, segment.owner, call)
    if (handle !== undefined && segment.owner === undefined) {
      await recorder.transact(sessionId, (state) => adopt(state, segment, handle.id))
    }
    return call.isAbandoned ? undefined : handle
  }

  async #ask(
    handle: AgentHandle,
    sessionId: string,
    segment: ClaimedSegment,
    call: ProviderCall<Offered>,
  ): Promise<Offered> {
    const { settings, slots } = this.#parts
    const commit = commitOf(settings, sessionId, segment, call)
    const read = readCommitAnswer(await handle.agent.commitMemorySession(commit))
    slots.noteSuccess(handle.provider)
    if (read.kind !== 'accepted' || typeof handle.agent.settleMemoryCommit === 'function') return read
    settings.logger.warn(
      { sessionId, agentId: handle.id },
      'the agent answered "accepted" but has no settleMemoryCommit: the segment counts as committed',
    )
    return { kind: 'committed' }
  }
}
