import {
  accept,
  type ClaimedSegment,
  type Decision,
  fail,
  type FailureResult,
  release,
  retryDelay,
  succeed,
} from '../core/index.js'
import type { Agents } from './agents.js'
import { isRetryable, type ReadAnswer } from './answers.js'
import type { CallResult, ProviderCall } from './call.js'
import type { Events } from './events.js'
import type { Flight, Flights } from './flights.js'
import type { Settings } from './options.js'
import { abandonedError, nameOf, type StepOutcome } from './outcomes.js'
import type { Recorder } from './recorder.js'
import type { Slots } from './slots.js'

/** What came of one offer; the two words mean that the provider was not called. */
export type Offered = 'gone' | 'crowded' | ReadAnswer

export interface ConclusionParts {
  readonly settings: Settings
  readonly agents: Agents
  readonly events: Events
  readonly recorder: Recorder
  readonly flights: Flights
  readonly slots: Slots
}

/** What the caller remembers over several offers. */
interface Memory {
  readonly tried: Set<number>
  readonly gone: Set<string | undefined>
}

/**
 * Turns what a provider did into the next transition. Nothing is assumed after the call: each record names its claim by
 * key and token, and counts only if that is still so.
 */
export class Conclusions {
  readonly #parts: ConclusionParts

  constructor(parts: ConclusionParts) {
    this.#parts = parts
  }

  async conclude(
    flight: Flight,
    segment: ClaimedSegment,
    call: ProviderCall<Offered>,
    result: CallResult<Offered> | 'abandoned',
    memory: Memory,
  ): Promise<StepOutcome | 'again'> {
    const { recorder, settings, slots, agents } = this.#parts
    const { sessionId } = flight
    if (call.abortedBy === 'closed') return { status: 'aborted' }
    if (result === 'abandoned') {
      const { from, to, owner, attempts: attempt, reason } = segment
      const handle = owner === undefined ? undefined : agents.find(sessionId, owner)
      if (handle !== undefined) slots.noteSlow(handle.provider)
      void this.#watchLate(sessionId, segment, call)
      const outcome = await this.#fail(flight, segment, abandonedError(sessionId, settings))
      this.#parts.events.emit('commit:abandoned', { sessionId, from, to, owner, attempt, reason })
      return outcome
    }
    if (result.kind === 'threw') {
      if (call.abortedBy === 'shutdown') return this.#giveBack(sessionId, segment, { status: 'aborted' })
      return this.#fail(flight, segment, result.error)
    }
    const { value } = result
    if (value === 'gone') {
      memory.tried.delete(segment.from)
      memory.gone.add(segment.owner)
      return this.#giveBack(sessionId, segment, 'again')
    }
    if (value === 'crowded') {
      memory.tried.delete(segment.from)
      return this.#giveBack(sessionId, segment, 'again')
    }
    const { from, to, attempts: attempt } = segment
    switch (value.kind) {
      case 'committed':
        await recorder.record(sessionId, (state) => succeed(state, segment))
        return { status: 'committed', from, to, attempt }
      case 'accepted': {
        const at = settings.clock.now()
        const askAt = at + retryDelay(1, settings.retry, settings.random())
        const acceptance = {
          ...nameOf(segment),
          receipt: value.receipt,
          askAt,
          settleBy: at + settings.settleTimeoutMs,
        }
        const { result: isCounted } = await recorder.record(sessionId, (state) => accept(state, acceptance))
        return isCounted ? { status: 'accepted', from, to, attempt } : overtaken(flight, segment)
      }
      case 'invalid':
        return this.#fail(flight, segment, value.error)
      default:
        return value satisfies never
    }
  }

  async #fail(flight: Flight, segment: ClaimedSegment, error: unknown): Promise<StepOutcome> {
    const { settings, recorder } = this.#parts
    const { sessionId } = flight
    const failure = {
      ...nameOf(segment),
      at: settings.clock.now(),
      error: settings.describeError(error),
      retryable: isRetryable(error),
      retry: settings.retry,
      chance: settings.random(),
    }
    const { result } = await recorder.record(sessionId, (state): Decision<FailureResult> => fail(state, failure))
    if (result === 'ignored') return overtaken(flight, segment)
    const { from, to, attempts: attempt } = segment
    settings.logger.warn({ sessionId, from, to, attempt, err: failure.error }, 'a commit failed')
    return { status: result === 'parked' ? 'parked' : 'failed', from, to, attempt, error }
  }

  async #giveBack<T>(sessionId: string, segment: ClaimedSegment, outcome: T): Promise<T> {
    await this.#parts.recorder.record(sessionId, (state) => release(state, segment))
    return outcome
  }

  /** An abandoned call may still succeed: that counts by its key, and a retry under way becomes needless (C13). */
  async #watchLate(sessionId: string, segment: ClaimedSegment, call: ProviderCall<Offered>): Promise<void> {
    const { recorder, flights, settings } = this.#parts
    const late = await call.late
    if (call.abortedBy === 'closed' || late.kind !== 'returned') return
    if (typeof late.value === 'string' || late.value.kind !== 'committed') return
    try {
      const { result } = await recorder.record(sessionId, (state) => succeed(state, segment))
      const flight = flights.get(sessionId)
      if (result.needless !== undefined && flight?.segment?.token === result.needless.token) flight.abort('needless')
    } catch (error) {
      settings.logger.warn(
        { sessionId, err: settings.describeError(error) },
        'a late success is kept until the ledger is back',
      )
    }
  }
}

/** The claim was gone when the answer came: discarded, or cleared by a late success of an earlier attempt. */
function overtaken(flight: Flight, { from, to, attempts: attempt }: ClaimedSegment): StepOutcome {
  return flight.isDiscarded ? { status: 'aborted' } : { status: 'committed', from, to, attempt }
}
