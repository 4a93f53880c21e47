import { TidemarkError } from '../base/errors.js'
import { checkSessionId } from '../base/ids.js'
import {
  discard,
  hasUncommittedWork,
  releaseClaim,
  retractTurns,
  type Retraction,
  type SessionState,
  unpark,
} from '../core/index.js'
import type { MemoryAgent } from './agent.js'
import { AgentCloser } from './agent-closer.js'
import { type AgentHandle, Agents, type Standing } from './agents.js'
import { Background } from './background.js'
import { ByHand, type CommitOptions } from './by-hand.js'
import { Committer } from './committer.js'
import { Drain } from './drain.js'
import { type EventName, Events, type Listener } from './events.js'
import { Evictor } from './evictor.js'
import { Flights } from './flights.js'
import { healthOf } from './health.js'
import { Holds } from './holds.js'
import { Marker, type MarkOptions } from './marker.js'
import { count, duration, type LifecycleOptions, resolveOptions, type Settings } from './options.js'
import { Newcomers } from './newcomers.js'
import { Owners } from './owners.js'
import { Recorder } from './recorder.js'
import { Recovery } from './recovery.js'
import type { CommitOutcome, DrainReport, EvictReport, FlushReport, Health, SessionSnapshot } from './reports.js'
import { rotateSession } from './rotation.js'
import { Settler } from './settler.js'
import { Slots } from './slots.js'
import { matches, type SessionFilter, snapshotOf } from './snapshot.js'
import { Wakes } from './wakes.js'

export interface EvictOptions {
  /** Close this agent only, also if another one has taken its place. @default all agents of the session */
  readonly agent?: MemoryAgent
  /** Ends the wait; nothing is closed then. */
  readonly signal?: AbortSignal
}

const NOTHING_DONE: FlushReport = Object.freeze({ committed: 0, accepted: 0, failed: 0, parked: 0, clean: true })
const NOTHING_EVICTED: EvictReport = Object.freeze({ closed: false, clean: true, remaining: Object.freeze([]) })
const NOTHING_RETRACTED: Retraction = Object.freeze({ retracted: 0, offered: 0 })
const NO_OPTIONS: MarkOptions = Object.freeze({})
const DRAIN_DEADLINE_MS = 20_000

/**
 * Records completed turns and hands them, as segments, to the agents that own them. The decisions are pure and live in
 * the core; the ledger makes them durable; this class keeps the live objects and calls them, outside of every lock.
 */
export class MemoryLifecycle {
  readonly #settings: Settings
  readonly #events: Events
  readonly #closer: AgentCloser
  readonly #agents: Agents
  readonly #recorder: Recorder
  readonly #owners: Owners
  readonly #flights = new Flights()
  readonly #holds = new Holds()
  readonly #slots: Slots
  readonly #wakes: Wakes
  readonly #settler: Settler
  readonly #committer: Committer
  readonly #background: Background
  readonly #recovery: Recovery
  readonly #byHand: ByHand
  readonly #evictor: Evictor
  readonly #newcomers: Newcomers
  readonly #marker: Marker
  readonly #drains = new Set<Drain>()
  #closing: Promise<void> | undefined

  private constructor(settings: Settings) {
    this.#settings = settings
    this.#events = new Events(settings.logger)
    this.#closer = new AgentCloser(settings, this.#events)
    this.#agents = new Agents((handle) => this.#closer.close(handle))
    this.#wakes = new Wakes(settings.clock, (sessionId) => this.#background.look(sessionId))
    this.#recorder = new Recorder(settings, this.#events, this.#agents, {
      onState: (sessionId, state) => this.#tellDrains(sessionId, state),
      onWakeAt: (sessionId, at) => this.#wakes.schedule(sessionId, at),
      onFinished: (sessionId) => this.#noteFinished(sessionId),
      onFailed: (sessionId) => this.#background.lookLater(sessionId),
    })
    this.#owners = new Owners(settings, this.#agents)
    this.#slots = new Slots(settings.concurrency)
    const parts = {
      settings,
      agents: this.#agents,
      owners: this.#owners,
      events: this.#events,
      recorder: this.#recorder,
      flights: this.#flights,
      slots: this.#slots,
      holds: this.#holds,
      wakes: this.#wakes,
    }
    this.#settler = new Settler(parts)
    this.#committer = new Committer(parts)
    this.#evictor = new Evictor({ ...parts, committer: this.#committer })
    this.#background = new Background({ ...parts, committer: this.#committer, settler: this.#settler })
    this.#recovery = new Recovery({ ...parts, background: this.#background })
    this.#byHand = new ByHand({ ...parts, committer: this.#committer, closing: this.#background.closing })
    this.#newcomers = new Newcomers({
      agents: this.#agents,
      register: (sessionId, handle) => this.#register(sessionId, handle),
      reinstate: (sessionId, handle, before) => this.#reinstate(sessionId, handle, before),
    })
    this.#marker = new Marker({
      ...parts,
      newcomers: this.#newcomers,
      onRecorded: (sessionId, state, owner) => this.#noteRecorded(sessionId, state, owner),
    })
  }

  /** Opens the ledger and takes up, in the background, what earlier processes left in it. */
  static async open(options: LifecycleOptions = {}): Promise<MemoryLifecycle> {
    const lifecycle = new MemoryLifecycle(resolveOptions(options))
    await lifecycle.#settings.ledger.open()
    lifecycle.#recovery.start()
    return lifecycle
  }

  /** Makes `agent` the session's current agent, and nothing else. */
  registerAgent(sessionId: string, agent: MemoryAgent): void {
    const id = checkSessionId(sessionId)
    if (id === undefined) return
    this.#assertOpen()
    this.#newcomers.settle(id)
    this.#register(id, this.#agents.handleOf(agent))
  }

  /** Forgets the current agent. Segments keep their owners. */
  unregisterAgent(sessionId: string): void {
    const id = checkSessionId(sessionId)
    if (id === undefined) return
    this.#assertOpen()
    const handle = this.#agents.unregister(id)
    if (handle === undefined) return
    this.#events.emit('agent:unregistered', { sessionId: id, agentId: handle.id })
    // Reading the session lets go of the agent if it owns nothing.
    this.#background.track(
      this.#recorder.read(id).then(() => undefined),
      id,
    )
  }

  /** Records a completed turn; resolves with its generation when that is as durable as the ledger makes it. */
  markTurnCompleted(sessionId: string, options: MarkOptions = NO_OPTIONS): Promise<number> {
    try {
      const id = checkSessionId(sessionId)
      if (id === undefined) return Promise.resolve(0)
      this.#assertOpen()
      return this.#marker.mark(id, options)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Withdraws the turns from a generation on, as far as no provider was offered them. */
  async retractTurns(sessionId: string, fromGeneration: number): Promise<Retraction> {
    const id = checkSessionId(sessionId)
    if (!Number.isSafeInteger(fromGeneration)) {
      throw new TypeError(`fromGeneration must be a whole number, but is ${String(fromGeneration)}.`)
    }
    if (id === undefined) return NOTHING_RETRACTED
    this.#assertOpen()
    const { result } = await this.#recorder.transact(id, (state) => retractTurns(state, fromGeneration))
    return result
  }

  async hasUncommittedWork(sessionId: string): Promise<boolean> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return false
    this.#assertOpen()
    return hasUncommittedWork(await this.#recorder.read(id))
  }

  /** Offers the oldest available segment to its owner: one attempt, reported as it went. */
  async commit(sessionId: string, options: CommitOptions = {}): Promise<CommitOutcome> {
    const id = checkSessionId(sessionId)
    const adopter = options.agent === undefined ? undefined : this.#agents.handleOf(options.agent)
    if (id === undefined) return { status: 'clean' }
    this.#assertOpen()
    return this.#byHand.commit(id, options, adopter)
  }

  /** Commits segment after segment, each once, until the session is clean or nothing progresses. */
  async flush(sessionId: string, options: Pick<CommitOptions, 'signal' | 'reason'> = {}): Promise<FlushReport> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return NOTHING_DONE
    this.#assertOpen()
    return this.#byHand.flush(id, options)
  }

  /** A boundary for the previous conversation. The caller never waits for the provider. */
  switchSession(previousId: string, nextId: string): void {
    const previous = checkSessionId(previousId)
    const next = checkSessionId(nextId)
    if (previous === undefined || previous === next) return
    this.#assertOpen()
    this.#background.boundary(previous, 'switch')
  }

  /** Flushes the session, then closes and forgets its agents; what is left keeps its owner. */
  async evict(sessionId: string, options: EvictOptions = {}): Promise<EvictReport> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return NOTHING_EVICTED
    this.#assertOpen()
    const report = await this.#evictor.evict(id, [options.signal, this.#background.closing], options.agent)
    // Its boundary stands: what is left is retried, or waits for its owner.
    if (!report.clean) this.#background.lookLater(id)
    return report
  }

  /** A turn is being served: its agent is not closed until the returned function is called. */
  hold(sessionId: string): () => void {
    const id = checkSessionId(sessionId)
    if (id === undefined) return () => undefined
    this.#assertOpen()
    const serving = this.#agents.current(id)
    if (serving !== undefined) this.#agents.pin(serving)
    return this.#holds.hold(id, () => {
      if (serving !== undefined) this.#agents.unpin(serving)
    })
  }

  /** The conversation goes on under another id. May be repeated after a crash. */
  async rotate(oldId: string, newId: string): Promise<void> {
    const from = checkSessionId(oldId)
    const to = checkSessionId(newId)
    if (from === undefined || to === undefined) return
    if (from === to) throw new TypeError('rotate needs two different session ids.')
    this.#assertOpen()
    await rotateSession({ agents: this.#agents, recorder: this.#recorder }, from, to)
    this.#background.agentCame(to)
    this.#background.work(from)
  }

  /** Lets go of a session. Refused (false) while anything is owed to a provider, unless forced. */
  async discard(sessionId: string, options: { readonly force?: boolean } = {}): Promise<boolean> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return true
    this.#assertOpen()
    const { result } = await this.#recorder.transact(
      id,
      (state) => discard(state, options.force === true),
      (isDiscarded) => {
        if (isDiscarded) this.#forget(id)
      },
    )
    return result
  }

  /** Gives parked segments their attempts back and takes them up again; of one session, or of all. */
  async retryParked(sessionId?: string): Promise<number> {
    this.#assertOpen()
    if (sessionId !== undefined) {
      const id = checkSessionId(sessionId)
      return id === undefined ? 0 : this.#unpark(id)
    }
    let segments = 0
    for await (const { sessionId: id, state } of this.#settings.ledger.sessions('unfinished')) {
      if (state.segments.some((segment) => segment.state === 'parked')) segments += await this.#unpark(id)
    }
    return segments
  }

  /**
   * Commits everything that is dirty; returns by the deadline, always, with a report. The signal ends it at once: running
   * calls are aborted, and nobody waits for those that do not obey.
   */
  async drain(
    options: { readonly deadlineMs?: number; readonly concurrency?: number; readonly signal?: AbortSignal } = {},
  ): Promise<DrainReport> {
    const deadlineMs = duration('deadlineMs', options.deadlineMs, DRAIN_DEADLINE_MS)
    const concurrency = count('concurrency', options.concurrency, this.#settings.concurrency)
    this.#assertOpen()
    const drain = new Drain(
      {
        settings: this.#settings,
        agents: this.#agents,
        owners: this.#owners,
        events: this.#events,
        recorder: this.#recorder,
        committer: this.#committer,
        background: this.#background,
        flights: this.#flights,
        slots: this.#slots,
      },
      concurrency,
    )
    this.#drains.add(drain)
    this.#slots.limit = concurrency
    try {
      return await drain.run(deadlineMs, options.signal)
    } finally {
      this.#drains.delete(drain)
      if (this.#drains.size === 0) this.#slots.limit = this.#settings.concurrency
    }
  }

  /** What is known of a session; nothing if it was never seen. */
  async inspect(sessionId: string): Promise<SessionSnapshot | undefined> {
    const id = checkSessionId(sessionId)
    if (id === undefined) return undefined
    this.#assertOpen()
    const state = await this.#recorder.read(id)
    if (state.generation === 0 && this.#agents.current(id) === undefined) return undefined
    return this.#snapshot(id, state)
  }

  /** Every session the ledger knows, those that wait longest first. */
  async *sessions(filter: SessionFilter = {}): AsyncGenerator<SessionSnapshot> {
    this.#assertOpen()
    const isFinishedOut = filter.uncommitted === true || filter.parked === true || filter.unsettled === true
    for await (const { sessionId, state } of this.#settings.ledger.sessions(isFinishedOut ? 'unfinished' : 'all')) {
      if (matches(state, filter)) yield this.#snapshot(sessionId, state)
    }
  }

  async health(): Promise<Health> {
    const since = [...this.#flights.offered()].map(({ segment }) => segment.claimedAt)
    return healthOf(this.#settings, {
      isClosed: this.#closing !== undefined,
      inFlight: since.length,
      oldestFlightAt: since.length === 0 ? undefined : since.reduce((one, other) => Math.min(one, other)),
      keptAnswers: this.#recorder.keptAnswers,
      lastSuccessAt: this.#recorder.lastSuccessAt,
    })
  }

  /** Calls `listener` after each such transition; the returned function unsubscribes. */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void {
    this.#assertOpen()
    return this.#events.on(event, listener)
  }

  /** Starts nothing new, aborts running calls, waits for no provider, closes the ledger. Drain first to lose no time. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #register(sessionId: string, handle: AgentHandle): void {
    if (!this.#agents.register(sessionId, handle)) return
    this.#events.emit('agent:registered', { sessionId, agentId: handle.id })
    this.#background.agentCame(sessionId)
    for (const drain of this.#drains) drain.touch(sessionId)
  }

  #reinstate(sessionId: string, handle: AgentHandle, before: Standing): void {
    if (!this.#agents.reinstate(sessionId, handle, before)) return
    const current = this.#agents.current(sessionId)
    if (current === undefined) this.#events.emit('agent:unregistered', { sessionId, agentId: handle.id })
    else this.#events.emit('agent:registered', { sessionId, agentId: current.id })
  }

  /** Lets go of everything live about a discarded session. */
  #forget(sessionId: string): void {
    const flight = this.#flights.get(sessionId)
    if (flight !== undefined) {
      flight.isDiscarded = true
      flight.abort('needless')
    }
    this.#noteFinished(sessionId)
    const current = this.#agents.forget(sessionId)
    if (current !== undefined) this.#events.emit('agent:unregistered', { sessionId, agentId: current.id })
  }

  /** Nothing is owed to anybody any more: there is nothing to wake up for. */
  #noteFinished(sessionId: string): void {
    this.#wakes.cancel(sessionId)
    this.#background.forget(sessionId)
  }

  #noteRecorded(sessionId: string, state: SessionState, owner: AgentHandle | undefined): void {
    this.#recovery.noteRecorded(sessionId, state.generation)
    // Its agent was evicted while the turn was on its way: nobody else would give it a boundary.
    if (owner?.isDoomed === true && this.#agents.current(sessionId) !== owner)
      this.#background.boundary(sessionId, 'evict')
    if (state.boundary !== undefined) this.#background.work(sessionId)
    this.#tellDrains(sessionId, state)
    for (const drain of this.#drains) drain.touch(sessionId)
  }

  #tellDrains(sessionId: string, state: SessionState): void {
    for (const drain of this.#drains) drain.noteState(sessionId, state)
  }

  async #unpark(sessionId: string): Promise<number> {
    const at = this.#settings.clock.now()
    const { result } = await this.#recorder.transact(sessionId, (state) =>
      unpark(state, { at, settleBy: at + this.#settings.settleTimeoutMs }),
    )
    if (result > 0) for (const drain of this.#drains) drain.touch(sessionId)
    return result
  }

  #snapshot(sessionId: string, state: SessionState): SessionSnapshot {
    return snapshotOf(sessionId, state, {
      inFlight: this.#flights.get(sessionId)?.segment !== undefined,
      agentId: this.#agents.current(sessionId)?.id,
    })
  }

  async #close(): Promise<void> {
    const { ledger, logger, describeError } = this.#settings
    this.#background.close()
    this.#recovery.close()
    this.#wakes.clear()
    this.#settler.close()
    this.#committer.close()
    this.#closer.stop()
    const recorded = this.#recorder.close()
    const claiming = [...this.#flights.claiming()]
    this.#flights.abortAll('closed')
    // Nobody waits for these calls any more, and some have not even begun: their attempts are given back, so that the next
    // process starts fresh. A claim that is on its way comes before this in the order of the ledger.
    const releases = claiming.map((sessionId) =>
      ledger.transact(sessionId, (state) => releaseClaim(state, ledger.instance)),
    )
    for (const result of await Promise.allSettled(releases)) {
      if (result.status === 'rejected')
        logger.warn({ err: describeError(result.reason) }, 'a claim could not be released')
    }
    await recorded
    await ledger.close()
  }

  #assertOpen(): void {
    if (this.#closing === undefined) return
    throw new TidemarkError('CLOSED', 'This MemoryLifecycle is closed. Open a new one on the same ledger to go on.')
  }
}
