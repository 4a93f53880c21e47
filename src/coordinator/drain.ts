import { setMaxListeners } from 'node:events'
import {
  allSegments,
  emptySession,
  hasUncommittedWork,
  type PendingBoundary,
  retryDelay,
  type SessionState,
} from '../core/index.js'
import type { Agents } from './agents.js'
import type { Background } from './background.js'
import type { Committer } from './committer.js'
import type { Events } from './events.js'
import type { Flights } from './flights.js'
import type { Settings } from './options.js'
import type { StepOutcome } from './outcomes.js'
import type { Owners } from './owners.js'
import type { Recorder } from './recorder.js'
import { isDirty, isTouched, newTask, type Task } from './drain-task.js'
import { remainingOf } from './remaining.js'
import type { DrainReport } from './reports.js'
import type { ProviderKey, Slots } from './slots.js'
import { ABORTED, sleepUntil, waitOrAbort } from './wait.js'

export interface DrainParts {
  readonly settings: Settings
  readonly agents: Agents
  readonly owners: Owners
  readonly events: Events
  readonly recorder: Recorder
  readonly committer: Committer
  readonly background: Background
  readonly flights: Flights
  readonly slots: Slots
}

/** Whatever is there covers it: a drain also flushes what is recorded while it runs. */
const SHUTDOWN: PendingBoundary = Object.freeze({ reason: 'shutdown', through: Infinity })

/**
 * Commits everything that is dirty before a deadline (D1–D5). Sessions run side by side, as many at once as there are
 * slots, in one line a provider: a hung provider holds up its own line only. One grace period before the deadline
 * signals are aborted and nothing new begins; at the deadline the report is given, whatever is still under way.
 */
export class Drain {
  readonly #parts: DrainParts
  readonly #concurrency: number
  readonly #tasks = new Map<string, Task>()
  readonly #pending = new Set<Promise<void>>()
  readonly #stop = new AbortController()
  readonly #counts = { committed: 0, accepted: 0, parked: 0 }
  #stopAt = 0
  #left = 0
  /** Sessions whose last attempt failed. */
  #failing = 0
  /** The ledger could not say what there is to do. */
  #isBlind = false
  #isOver = false

  constructor(parts: DrainParts, concurrency: number) {
    this.#parts = parts
    this.#concurrency = concurrency
    // One listener for each session that waits, and all of them go with the drain.
    setMaxListeners(0, this.#stop.signal)
  }

  async run(deadlineMs: number, signal: AbortSignal | undefined): Promise<DrainReport> {
    const { settings, events, background, flights } = this.#parts
    const { clock } = settings
    const startedAt = clock.now()
    // Where a grace period does not fit into the deadline, half of it goes to each.
    const grace = settings.abandonGraceMs < deadlineMs ? settings.abandonGraceMs : deadlineMs / 2
    this.#stopAt = startedAt + deadlineMs - grace
    const stop = (): void => {
      this.#stop.abort()
      flights.abortAll('shutdown')
    }
    const deadline = new AbortController()
    const cancelStop = clock.setTimer(stop, deadlineMs - grace, { keepAlive: true })
    const cancelDeadline = clock.setTimer(() => deadline.abort(), deadlineMs, { keepAlive: true })
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted === true) stop()
    const resume = background.pause()
    events.emit('drain:started', { deadlineMs })
    try {
      const end = await waitOrAbort(this.#drainAll(signal), deadline.signal, background.closing)
      const report = this.#report(clock.now() - startedAt, end === ABORTED || this.#stop.signal.aborted)
      events.emit('drain:finished', { ...report, remaining: report.remaining.length })
      return report
    } finally {
      cancelStop()
      cancelDeadline()
      signal?.removeEventListener('abort', stop)
      this.#stop.abort()
      resume()
      this.#leaveBehind()
    }
  }

  /** What was begun here and cut short is a boundary's work: if the process goes on, so does that. */
  #leaveBehind(): void {
    this.#isOver = true
    for (const { sessionId, state } of this.#tasks.values()) {
      if (state.boundary !== undefined) this.#parts.background.lookLater(sessionId)
    }
  }

  /** A session was read, or a transition has become durable, whoever asked for it: the report is right at any time. */
  noteState(sessionId: string, state: SessionState): void {
    const known = this.#tasks.get(sessionId)
    const task = known ?? (hasUncommittedWork(state) ? this.#addTask(sessionId, state) : undefined)
    if (task === undefined) return
    task.state = state
    this.#countUnrecorded(task)
  }

  /** A turn was recorded, or an agent came: the session is taken up at once, whatever else is hanging. */
  touch(sessionId: string): void {
    const task = this.#tasks.get(sessionId)
    if (task?.isRunning === true) {
      task.again = true
      return
    }
    if (task?.wake !== undefined) {
      task.wake()
      return
    }
    if (this.#stop.signal.aborted) return
    this.#left += 1
    this.#track(this.#workOff([task ?? this.#addTask(sessionId, emptySession)], () => undefined))
  }

  /**
   * Until nothing is under way and a look at the whole ledger finds nothing that could progress. The caller's signal ends
   * it after the look that the report needs, whatever is still under way.
   */
  async #drainAll(signal: AbortSignal | undefined): Promise<void> {
    const stop = this.#stop.signal
    for (let failures = 0; ;) {
      const lines = await this.#tryFindWork()
      failures = lines === undefined ? failures + 1 : 0
      if (!stop.aborted && lines !== undefined) this.#begin(lines)
      else if (!stop.aborted) await sleepUntil(this.#parts.settings.clock, this.#retryAt(failures), stop)
      if (this.#pending.size === 0 && (lines?.size === 0 || stop.aborted)) return
      while (this.#pending.size > 0 && signal?.aborted !== true) await waitOrAbort(Promise.all(this.#pending), signal)
      if (signal?.aborted === true) return
    }
  }

  /** Everybody is announced before anybody starts: the first line must not take all slots. */
  #begin(lines: ReadonlyMap<ProviderKey, Task[]>): void {
    const starts = [...lines].map(([provider, line]) => ({ line, ended: this.#parts.slots.announce(provider) }))
    for (const { line, ended } of starts) this.#track(this.#workOff(line, ended))
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#pending.delete(tracked))
    this.#pending.add(tracked)
    // Whoever waits for it hears of a failure; a drain that has ended does not.
    tracked.catch((error: unknown) => this.#logFailure(error))
  }

  #logFailure(error: unknown): void {
    const { logger, describeError } = this.#parts.settings
    logger.error(
      { err: describeError(error) },
      'the ledger failed during a drain; it is tried again while there is time',
    )
  }

  #retryAt(failures: number): number {
    const { clock, retry, random } = this.#parts.settings
    return clock.now() + retryDelay(failures, retry, random())
  }

  #addTask(sessionId: string, state: SessionState): Task {
    const task = newTask(sessionId, state)
    this.#tasks.set(sessionId, task)
    return task
  }

  async #tryFindWork(): Promise<Map<ProviderKey, Task[]> | undefined> {
    try {
      const lines = await this.#findWork()
      this.#isBlind = false
      return lines
    } catch (error) {
      this.#isBlind = true
      this.#logFailure(error)
      return undefined
    }
  }

  async #findWork(): Promise<Map<ProviderKey, Task[]>> {
    const lines = new Map<ProviderKey, Task[]>()
    this.#left = 0
    for await (const { sessionId, state } of this.#parts.settings.ledger.sessions('unfinished')) {
      if (!hasUncommittedWork(state)) continue
      const task = this.#tasks.get(sessionId) ?? this.#addTask(sessionId, state)
      if (task.isRunning) continue
      task.state = state
      if (task.stuckAt === this.#fingerprint(sessionId, state) || !allSegments(state).some(isDirty)) continue
      this.#left += 1
      const provider = this.#providerOf(sessionId, state)
      const line = lines.get(provider)
      if (line === undefined) lines.set(provider, [task])
      else line.push(task)
    }
    return lines
  }

  async #workOff(line: Task[], ended: () => void): Promise<void> {
    const later: Promise<void>[] = []
    let next = 0
    const worker = async (): Promise<void> => {
      for (let task = line[next++]; task !== undefined; task = line[next++]) {
        if (this.#stop.signal.aborted) return
        if (task.isRunning) continue
        const until = await this.#drainSession(task)
        if (until !== undefined) later.push(this.#continueAt(task, until))
      }
    }
    try {
      await Promise.all(Array.from({ length: Math.min(line.length, this.#concurrency) }, worker))
    } finally {
      ended()
    }
    await Promise.all(later)
  }

  /** A session in backoff gives its place to the next one, and comes back when its time has come. */
  async #continueAt(task: Task, first: number): Promise<void> {
    const { clock } = this.#parts.settings
    for (let until: number | undefined = first; until !== undefined; until = await this.#drainSession(task)) {
      await sleepUntil(clock, until, this.#stop.signal, (wake) => {
        task.wake = wake
      })
      task.wake = undefined
      if (this.#stop.signal.aborted) return
    }
  }

  /** Commits segment after segment; gives the time of the next attempt if there is one before the end. */
  async #drainSession(task: Task): Promise<number | undefined> {
    task.isRunning = true
    task.gone = new Set()
    try {
      const until = await this.#commitAll(task)
      task.failures = 0
      if (until !== undefined) return until
    } catch (error) {
      this.#logFailure(error)
      task.failures += 1
      const until = this.#retryAt(task.failures)
      if (until < this.#stopAt) return until
    } finally {
      task.isRunning = false
    }
    // What is done need not be remembered: a turn that comes later makes a new task.
    if (hasUncommittedWork(task.state)) task.stuckAt = this.#fingerprint(task.sessionId, task.state)
    else this.#tasks.delete(task.sessionId)
    this.#left -= 1
    this.#progress()
    return undefined
  }

  async #commitAll(task: Task): Promise<number | undefined> {
    const { recorder, background } = this.#parts
    for (;;) {
      task.again = false
      const step = await this.#step(task)
      await recorder.read(task.sessionId)
      if (!allSegments(task.state).some(isDirty)) return undefined
      if (this.#stop.signal.aborted) {
        if (this.#isOver) background.lookLater(task.sessionId)
        return undefined
      }
      if (step === 'go on' || isTouched(task)) continue
      return step === 'stuck' ? undefined : step
    }
  }

  /** One commit, or the end of one that is under way. A number is the time of the next attempt. */
  async #step(task: Task): Promise<number | 'go on' | 'stuck'> {
    const { sessionId, gone = new Set() } = task
    const { committer, flights } = this.#parts
    const tried = new Set<number>()
    let outcome: StepOutcome
    try {
      outcome = await committer.commitNext(sessionId, {
        scope: 'all',
        reason: 'shutdown',
        boundary: SHUTDOWN,
        adopter: undefined,
        impatient: task.isImpatient,
        tried,
        gone,
        signal: this.#stop.signal,
      })
    } catch (error) {
      // If a provider has answered, its answer is kept and recorded later.
      task.unrecorded = [...tried][0]
      throw error
    }
    if (tried.size > 0) {
      this.#count(task, outcome, [...tried][0])
      task.isImpatient = outcome.status !== 'failed'
      return 'go on'
    }
    const flight = outcome.status === 'busy' ? flights.get(sessionId) : undefined
    if (flight === undefined) {
      return outcome.status === 'waiting' && outcome.until < this.#stopAt ? outcome.until : 'stuck'
    }
    const from = flight.segment?.from
    const landed = await waitOrAbort(flight.landed, this.#stop.signal)
    if (landed === undefined) task.unrecorded = from
    else if (landed !== ABORTED) this.#count(task, landed, from)
    return 'go on'
  }

  /** What became of a segment whose answer the ledger could not take at first. */
  #countUnrecorded(task: Task): void {
    if (task.unrecorded === undefined) return
    const found = allSegments(task.state).find(({ from }) => from === task.unrecorded)
    if (found?.state === 'claimed') return
    task.unrecorded = undefined
    if (found === undefined) this.#counts.committed += 1
    if (found?.state === 'accepted') this.#counts.accepted += 1
    if (found?.state === 'parked') this.#counts.parked += 1
  }

  #count(task: Task, outcome: StepOutcome, from: number | undefined): void {
    if (outcome.status === 'committed') this.#counts.committed += 1
    if (outcome.status === 'accepted') this.#counts.accepted += 1
    if (outcome.status === 'parked') this.#counts.parked += 1
    task.cutShort = outcome.status === 'aborted' ? from : undefined
    const isFailing = outcome.status === 'failed'
    if (isFailing !== task.isFailing) this.#failing += isFailing ? 1 : -1
    task.isFailing = isFailing
  }

  #progress(): void {
    const { events } = this.#parts
    if (!events.isHeard('drain:progressed')) return
    events.emit('drain:progressed', { ...this.#counts, failed: this.#failing, sessionsLeft: Math.max(0, this.#left) })
  }

  #report(durationMs: number, ranOut: boolean): DrainReport {
    const remaining = this.#remaining()
    const failed = remaining.filter(({ reason }) => reason === 'failing').length
    const timedOut = ranOut && (this.#isBlind || remaining.some(({ reason }) => reason !== 'parked'))
    return { ...this.#counts, failed, handedOver: 0, remaining, timedOut, durationMs }
  }

  #remaining(): DrainReport['remaining'] {
    const { flights, owners } = this.#parts
    return [...this.#tasks.values()].flatMap(({ sessionId, state, cutShort, gone = new Set() }) => {
      const inFlight = flights.get(sessionId)?.segment?.from
      const remaining = remainingOf(state, {
        isReachable: (owner) => owners.isReachable(sessionId, owner, gone),
        isInFlight: (from) => from === inFlight || from === cutShort,
      })
      return remaining.map((rest) => ({ sessionId, ...rest }))
    })
  }

  /** Changes whenever another try may find something else. */
  #fingerprint(sessionId: string, state: SessionState): string {
    let fingerprint = `${state.generation} ${state.token} ${state.retracted}`
    for (const { id } of this.#parts.agents.all(sessionId)) fingerprint += ` ${id}`
    return fingerprint
  }

  #providerOf(sessionId: string, state: SessionState): ProviderKey {
    const { agents } = this.#parts
    const owner = allSegments(state).find(isDirty)?.owner
    const handle = owner === undefined ? agents.current(sessionId) : agents.find(sessionId, owner)
    return handle?.provider ?? 'unknown'
  }
}
