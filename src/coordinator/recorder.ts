import {
  answer,
  type CoreEvent,
  type Decision,
  isFinished,
  nextWake,
  retryDelay,
  type SessionState,
} from '../core/index.js'
import type { Decide } from '../ledger/ledger.js'
import type { Agents } from './agents.js'
import type { Events } from './events.js'
import type { Settings } from './options.js'

/** Answers of one session, oldest first. */
interface Kept {
  readonly answers: Decide<unknown>[]
  cancelRetry: () => void
}

interface Hooks {
  /** What a session is now, in the order of the ledger. */
  readonly onState: (sessionId: string, state: SessionState) => void
  readonly onWakeAt: (sessionId: string, at: number) => void
  /** Nothing of the session is owed to anybody any more. */
  readonly onFinished: (sessionId: string) => void
  /** A transition failed, as far as we know: it may have become durable all the same. */
  readonly onFailed: (sessionId: string) => void
}

/**
 * The way to the ledger. After each transition that became durable: events go out, the next wake-up is set, agents that
 * own nothing any more are let go. An answer that could not be recorded is kept, and recorded before anything else
 * happens to its session (C14).
 */
export class Recorder {
  readonly #settings: Settings
  readonly #events: Events
  readonly #agents: Agents
  readonly #hooks: Hooks
  readonly #kept = new Map<string, Kept>()
  #isClosed = false
  lastSuccessAt: number | undefined

  constructor(settings: Settings, events: Events, agents: Agents, hooks: Hooks) {
    this.#settings = settings
    this.#events = events
    this.#agents = agents
    this.#hooks = hooks
  }

  /** Answers that wait for the ledger to come back. */
  get keptAnswers(): number {
    return this.#kept.size
  }

  /** `onDurable` is called in the order in which transitions became durable, before anybody hears of this one. */
  async transact<R>(sessionId: string, decide: Decide<R>, onDurable?: (result: R) => void): Promise<Decision<R>> {
    const { ledger, boundaries } = this.#settings
    let decision: Decision<R>
    try {
      decision = await ledger.transact(sessionId, (state) => {
        const decided = decide(state)
        if (decided.state === state) return decided
        const wakeAt = nextWake(decided.state, boundaries)
        return wakeAt === undefined ? decided : { ...decided, wakeAt }
      })
    } catch (error) {
      this.noteFailed(sessionId)
      throw error
    }
    // Nothing between the ledger's answer and here: what follows happens in the order of the ledger.
    if (decision.events.some(isSuccess)) this.lastSuccessAt = this.#settings.clock.now()
    onDurable?.(decision.result)
    this.#hooks.onState(sessionId, decision.state)
    if (isFinished(decision.state)) this.#hooks.onFinished(sessionId)
    this.noteDurable(sessionId, decision)
    this.#agents.prune(sessionId, decision.state)
    return decision
  }

  /** Lets a transition out, once it is durable. */
  noteDurable(sessionId: string, { events, wakeAt }: Decision<unknown>): void {
    if (wakeAt !== undefined) this.#hooks.onWakeAt(sessionId, wakeAt)
    this.#events.emitAll(sessionId, events)
  }

  /** Somebody has to look what became of it: perhaps a wake-up is due that nobody was told of. */
  noteFailed(sessionId: string): void {
    this.#hooks.onFailed(sessionId)
  }

  async read(sessionId: string): Promise<SessionState> {
    const { result } = await this.#settings.ledger.transact(sessionId, (state) => answer(state, state))
    this.#hooks.onState(sessionId, result)
    this.#agents.prune(sessionId, result)
    return result
  }

  /** Records what a provider answered. If the ledger is away the caller is told, and the answer is kept. */
  async record<R>(sessionId: string, decide: Decide<R>): Promise<Decision<R>> {
    try {
      await this.recordKept(sessionId)
      return await this.transact(sessionId, decide)
    } catch (error) {
      this.#keep(sessionId, decide)
      throw error
    }
  }

  /** Records what was kept of a session; throws if the ledger is still away. */
  async recordKept(sessionId: string): Promise<void> {
    const kept = this.#kept.get(sessionId)
    if (kept === undefined) return
    const { answers } = kept
    for (let decide = answers[0]; decide !== undefined; decide = answers[0]) {
      await this.transact(sessionId, decide)
      // Another caller may have recorded it meanwhile; the transitions themselves count once.
      if (answers[0] === decide) answers.shift()
    }
    kept.cancelRetry()
    if (this.#kept.get(sessionId) === kept) this.#kept.delete(sessionId)
  }

  /** A last try: what is dropped now is offered again by the next process. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const { cancelRetry } of this.#kept.values()) cancelRetry()
    await Promise.allSettled([...this.#kept.keys()].map((sessionId) => this.recordKept(sessionId)))
    this.#kept.clear()
  }

  #keep(sessionId: string, decide: Decide<unknown>): void {
    if (this.#isClosed) return
    const kept = this.#kept.get(sessionId)
    if (kept !== undefined) {
      kept.answers.push(decide)
      return
    }
    this.#settings.logger.warn(
      { sessionId },
      'a provider’s answer could not be recorded; it is kept until the ledger is back',
    )
    const first: Kept = { answers: [decide], cancelRetry: () => undefined }
    this.#kept.set(sessionId, first)
    this.#tryAgain(sessionId, first, 1)
  }

  #tryAgain(sessionId: string, kept: Kept, tries: number): void {
    const { clock, retry, random } = this.#settings
    const attempt = async (): Promise<void> => {
      try {
        await this.recordKept(sessionId)
      } catch {
        // The ledger is still away; it says so itself in health().
        if (!this.#isClosed && this.#kept.get(sessionId) === kept) this.#tryAgain(sessionId, kept, tries + 1)
      }
    }
    kept.cancelRetry = clock.setTimer(() => void attempt(), retryDelay(tries, retry, random()))
  }
}

function isSuccess(event: CoreEvent): boolean {
  return event.type === 'commit:succeeded' || event.type === 'receipt:settled'
}
