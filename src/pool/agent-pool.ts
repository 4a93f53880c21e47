import { TidemarkError } from '../base/errors.js'
import { checkId, checkSessionId } from '../base/ids.js'
import type { MemoryAgent } from '../coordinator/agent.js'
import { describeError } from '../coordinator/describe-error.js'
import type { EvictReport } from '../coordinator/reports.js'
import { ABORTED, waitOrAbort } from '../coordinator/wait.js'
import { IdleAgents } from './idle-agents.js'
import { type AgentPoolOptions, type PoolSettings, resolvePoolOptions } from './options.js'
import { type Eviction, Resident } from './resident.js'

export interface PoolReport {
  /** Agents that are closed. */
  readonly closed: number
  /** Agents that are still open: they own work, serve a turn, or could not be evicted in time. */
  readonly left: number
}

const NOTHING_EVICTED: EvictReport = Object.freeze({ closed: false, clean: true, remaining: Object.freeze([]) })

/**
 * Keeps the live agents of many sessions, one each, and lets the lifecycle evict those that nobody needs.
 *
 * An agent is created → serves turns (pinned) ⇄ idle → being evicted → gone. Between two awaits everything here is
 * atomic, so there is no lock: a victim is chosen and taken out synchronously, and provider I/O happens afterwards. A
 * session that comes back while it is being evicted gets its agent back as long as the lifecycle has not let go of it;
 * after that, and after an eviction asked for by name, it waits for the end and gets a new one. So a session never has
 * two agents of this pool at once.
 */
export class AgentPool<Agent extends MemoryAgent = MemoryAgent> {
  readonly #settings: PoolSettings<Agent>
  /** Sessions that are served from here: creating, pinned or idle. */
  readonly #residents = new Map<string, Resident<Agent>>()
  /** Sessions that nobody is served by any more, until their eviction has ended. */
  readonly #evicting = new Map<string, Resident<Agent>>()
  readonly #idle: IdleAgents<Resident<Agent>>
  /** Aborted when `close` stops waiting. */
  readonly #stop = new AbortController()
  readonly #unsubscribe: readonly (() => void)[]
  #closing: Promise<PoolReport> | undefined

  constructor(options: AgentPoolOptions<Agent>) {
    this.#settings = resolvePoolOptions(options)
    const { lifecycle, max, idleMs, clock } = this.#settings
    const onExpired = (resident: Resident<Agent>): void => this.#evictIdle(resident)
    this.#idle = new IdleAgents({ max, idleMs, clock, onExpired })
    this.#unsubscribe = [
      lifecycle.on('agent:registered', ({ sessionId }) => this.#noteReplaced(sessionId)),
      lifecycle.on('agent:unregistered', ({ sessionId }) => this.#noteUnregistered(sessionId)),
      lifecycle.on('session:rotated', ({ sessionId, rotatedTo }) => this.#noteRotated(sessionId, rotatedTo)),
    ]
  }

  /** Sessions with an agent that can serve, or that is being created; without those that are being evicted. */
  get size(): number {
    return this.#residents.size
  }

  /** Agents on their way out: their sessions are being flushed, then they are closed. */
  get evicting(): number {
    return this.#evicting.size
  }

  /**
   * Runs a turn with the session's agent, which is not closed before the turn has ended. Await `markTurnCompleted`
   * inside. The signal ends the wait for the agent, not the turn.
   */
  async use<Result>(
    sessionId: string,
    turn: (agent: Agent) => Result | Promise<Result>,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Result> {
    const id = checkId(sessionId, 'sessionId')
    if (this.#closing !== undefined) throw closedError()
    const resident = this.#residents.get(id) ?? this.#takeBack(id) ?? this.#admit(id)
    try {
      this.#pin(resident)
      const agent = await waitOrAbort(resident.ready, options.signal)
      if (agent !== ABORTED) return await turn(agent)
      throw new TidemarkError('ABORTED', 'The wait for the session’s agent was ended by the caller’s signal.')
    } finally {
      this.#unpin(resident)
    }
  }

  /** Flushes the session and closes its agent when its turns have ended. Not to be awaited inside one of them. */
  async evict(sessionId: string): Promise<EvictReport> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return NOTHING_EVICTED
    if (this.#closing !== undefined) throw closedError()
    const resident = this.#residents.get(id) ?? this.#evicting.get(id)
    const report = resident === undefined ? undefined : await this.#evictForGood(resident)
    // Without an agent in the pool there may still be work of one that left it.
    return report ?? this.#settings.lifecycle.evict(id)
  }

  /**
   * Takes no more turns, waits for those that run, evicts every agent. The signal ends the wait: what is under way goes
   * on and counts as left. Idempotent. Close the pool before its lifecycle.
   */
  close(options: { readonly signal?: AbortSignal } = {}): Promise<PoolReport> {
    const { signal } = options
    const stop = (): void => this.#stop.abort()
    if (signal?.aborted === true) stop()
    else signal?.addEventListener('abort', stop, { once: true })
    this.#closing ??= this.#evictAll()
    return this.#closing.finally(() => signal?.removeEventListener('abort', stop))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #admit(sessionId: string): Resident<Agent> {
    const predecessor = this.#evicting.get(sessionId)?.eviction
    const resident = new Resident<Agent>(sessionId, (self) => this.#bring(self, predecessor))
    this.#residents.set(sessionId, resident)
    return resident
  }

  async #bring(resident: Resident<Agent>, predecessor: Eviction<Agent> | undefined): Promise<Agent> {
    try {
      // Awaited in any case: nobody's code runs before the resident has its place in the pool.
      const kept = await predecessor?.ended
      const agent = kept ?? (await this.#settings.create(resident.sessionId, { signal: this.#stop.signal }))
      this.#present(resident, agent)
      resident.agent = agent
      if (resident.pins === 0) this.#rest(resident)
      return agent
    } catch (error) {
      resident.releaseHolds()
      this.#residents.delete(resident.sessionId)
      throw error
    }
  }

  /** An agent that begins to serve is held, and is its session's current agent. */
  #present(resident: Resident<Agent>, agent: Agent): void {
    const { lifecycle } = this.#settings
    resident.keepHold(lifecycle.hold(resident.sessionId))
    lifecycle.registerAgent(resident.sessionId, agent)
  }

  #pin(resident: Resident<Agent>): void {
    resident.pins += 1
    this.#idle.remove(resident)
    this.#shrink()
    if (resident.pins === 1 && resident.agent !== undefined) this.#present(resident, resident.agent)
  }

  #unpin(resident: Resident<Agent>): void {
    resident.pins -= 1
    if (resident.pins === 0 && resident.agent !== undefined) this.#rest(resident)
  }

  /** Nobody is served any more. */
  #rest(resident: Resident<Agent>): void {
    if (resident.eviction === undefined) this.#idle.add(resident)
    else this.#takeOut(resident)
    // Only now: an eviction that waits for the hold must not find the session among those that are served.
    resident.releaseHolds()
    this.#shrink()
  }

  /** When everything is pinned there are more than `max`; each turn that ends brings the pool nearer to it. */
  #shrink(): void {
    while (this.#residents.size > this.#settings.max) {
      const victim = this.#idle.take()
      if (victim === undefined) return
      this.#evictIdle(victim)
    }
  }

  #evictIdle(resident: Resident<Agent>): void {
    if (resident.agent === undefined) return
    this.#takeOut(resident)
    this.#startEviction(resident, resident.agent, { isFinal: false })
  }

  async #evictForGood(resident: Resident<Agent>): Promise<EvictReport | undefined> {
    const agent = resident.agent ?? (await resident.ready.catch(() => undefined))
    // Whoever waited for it was told why there is none.
    if (agent === undefined) return undefined
    if (resident.isIdle) this.#takeOut(resident)
    return this.#startEviction(resident, agent, { isFinal: true }).report
  }

  #takeOut(resident: Resident<Agent>): void {
    this.#idle.remove(resident)
    this.#residents.delete(resident.sessionId)
    this.#evicting.set(resident.sessionId, resident)
  }

  #startEviction(
    resident: Resident<Agent>,
    agent: Agent,
    how: { readonly isFinal: boolean; readonly isReleased?: boolean },
  ): Eviction<Agent> {
    const { isFinal, isReleased = false } = how
    const known = resident.eviction
    if (known !== undefined) {
      known.isFinal ||= isFinal
      return known
    }
    const stop = new AbortController()
    const report = this.#callEvict(resident.sessionId, agent, { isReleased, signal: stop.signal })
    const ended = report.then(
      () => this.#noteEvicted(resident, eviction),
      (error: unknown) => this.#noteRefused(resident, eviction, error),
    )
    const eviction: Eviction<Agent> = { isFinal, isReleased, stop, report, ended }
    resident.eviction = eviction
    return eviction
  }

  /** It began under an id that the agent has left: it would close nothing there. */
  #restartEviction(resident: Resident<Agent>): void {
    const { eviction, agent } = resident
    if (eviction === undefined || agent === undefined) return
    resident.eviction = undefined
    eviction.stop.abort()
    this.#startEviction(resident, agent, { isFinal: eviction.isFinal })
  }

  async #callEvict(
    sessionId: string,
    agent: Agent,
    { isReleased, signal }: { readonly isReleased: boolean; readonly signal: AbortSignal },
  ): Promise<EvictReport> {
    const { lifecycle } = this.#settings
    // Current again, if somebody took its place: so we are told when it is let go of.
    if (!isReleased) lifecycle.registerAgent(sessionId, agent)
    return lifecycle.evict(sessionId, { agent, signal })
  }

  #noteEvicted(resident: Resident<Agent>, eviction: Eviction<Agent>): undefined {
    // Else the session came back for it.
    if (resident.eviction === eviction) this.#evicting.delete(resident.sessionId)
  }

  /** The ledger failed. The agent is open and serves on, under the session that waits for it or as an idle one. */
  #noteRefused(resident: Resident<Agent>, eviction: Eviction<Agent>, error: unknown): Agent | undefined {
    const { sessionId, agent } = resident
    if (resident.eviction !== eviction) return agent
    this.#evicting.delete(sessionId)
    this.#settings.logger.warn({ sessionId, err: describeError(error) }, 'an agent could not be evicted')
    if (eviction.isReleased) return undefined
    resident.eviction = undefined
    if (this.#residents.has(sessionId)) return agent
    this.#residents.set(sessionId, resident)
    this.#idle.addRefused(resident)
    return agent
  }

  /** The session came back before the lifecycle let go of its agent: a hold keeps it open, the eviction ends. */
  #takeBack(sessionId: string): Resident<Agent> | undefined {
    const resident = this.#evicting.get(sessionId)
    const eviction = resident?.eviction
    if (resident === undefined || eviction === undefined || eviction.isFinal || eviction.isReleased) return undefined
    resident.eviction = undefined
    this.#evicting.delete(sessionId)
    this.#residents.set(sessionId, resident)
    eviction.stop.abort()
    return resident
  }

  /** Another agent became the session's current one: the release of ours will not be announced. */
  #noteReplaced(sessionId: string): void {
    const eviction = this.#evicting.get(sessionId)?.eviction
    if (eviction !== undefined) eviction.isReleased = true
  }

  #noteUnregistered(sessionId: string): void {
    this.#noteReplaced(sessionId)
    const resident = this.#residents.get(sessionId)
    if (resident?.isIdle !== true || resident.agent === undefined) return
    // Somebody went past the pool, and the agent may be about to close: this eviction closes it if nobody else does.
    this.#takeOut(resident)
    this.#startEviction(resident, resident.agent, { isFinal: true, isReleased: true })
  }

  /** The agent goes on under the new id, and so does its place in the pool. */
  #noteRotated(oldId: string, newId: string): void {
    for (const residents of [this.#residents, this.#evicting]) {
      const resident = residents.get(oldId)
      if (resident === undefined || residents.has(newId) || resident.eviction?.isReleased === true) continue
      residents.delete(oldId)
      residents.set(newId, resident)
      resident.sessionId = newId
      if (resident.pins > 0) resident.keepHold(this.#settings.lifecycle.hold(newId))
      this.#restartEviction(resident)
    }
  }

  async #evictAll(): Promise<PoolReport> {
    const all = [...this.#residents.values(), ...this.#evicting.values()]
    const report = { closed: 0, left: all.length }
    const evictions = all.map(async (resident) => {
      const evicted = await this.#evictForGood(resident).catch(() => NOTHING_EVICTED)
      if (evicted?.closed !== false) report.left -= 1
      if (evicted?.closed === true) report.closed += 1
    })
    this.#idle.clear()
    await waitOrAbort(Promise.all(evictions), this.#stop.signal)
    for (const unsubscribe of this.#unsubscribe) unsubscribe()
    return { ...report }
  }
}

function closedError(): TidemarkError {
  return new TidemarkError('CLOSED', 'This AgentPool is closed: it takes no more turns.')
}
