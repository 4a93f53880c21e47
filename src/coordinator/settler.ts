import { randomUUID } from 'node:crypto'
import { TidemarkError } from '../base/errors.js'
import {
  type AcceptedSegment,
  retryDelay,
  type SessionState,
  settleCommitted,
  settleFailed,
  settlePending,
} from '../core/index.js'
import type { SettleAnswer } from './agent.js'
import type { AgentHandle, Agents } from './agents.js'
import { isRetryable, readSettleAnswer } from './answers.js'
import { ProviderCall } from './call.js'
import { commitOf } from './outcomes.js'
import type { Settings } from './options.js'
import type { Owners } from './owners.js'
import type { Recorder } from './recorder.js'
import { Slots } from './slots.js'

interface Parts {
  readonly settings: Settings
  readonly agents: Agents
  readonly owners: Owners
  readonly recorder: Recorder
}

/** What was learned of a receipt. Everything but a plain `failed` may still turn out well, so it is asked again. */
type Learned = SettleAnswer | { readonly status: 'unknown'; readonly error: unknown }

/** Asks providers what became of accepted segments (C11). Questions have slots of their own: they hold up no commit. */
export class Settler {
  readonly #parts: Parts
  readonly #slots: Slots
  readonly #asking = new Map<string, Promise<void>>()
  readonly #calls = new Set<ProviderCall<unknown>>()
  #isClosed = false

  constructor(parts: Parts) {
    this.#parts = parts
    this.#slots = new Slots(parts.settings.concurrency)
  }

  /** Asks about every receipt of the session that is due; one round at a time. */
  settleDue(sessionId: string): Promise<void> {
    const running = this.#asking.get(sessionId)
    if (running !== undefined) return running
    const round = this.#askAll(sessionId).finally(() => this.#asking.delete(sessionId))
    this.#asking.set(sessionId, round)
    return round
  }

  close(): void {
    this.#isClosed = true
    for (const call of this.#calls) call.abort('closed')
  }

  async #askAll(sessionId: string): Promise<void> {
    const { recorder } = this.#parts
    await recorder.recordKept(sessionId)
    for (const segment of this.#due(await recorder.read(sessionId))) await this.#ask(sessionId, segment)
  }

  #due(state: SessionState): AcceptedSegment[] {
    const now = this.#parts.settings.clock.now()
    const accepted = state.segments.filter((segment) => segment.state === 'accepted')
    return accepted.filter(({ askAt, settleBy }) => Math.min(askAt, settleBy) <= now)
  }

  async #ask(sessionId: string, segment: AcceptedSegment): Promise<void> {
    const { settings, agents, owners } = this.#parts
    const live = segment.owner === undefined ? undefined : agents.find(sessionId, segment.owner)
    const slot = await this.#slots.acquire(live?.provider ?? 'unknown', undefined)
    if (this.#isClosed) return
    let pinned: AgentHandle | undefined
    const call = new ProviderCall<Learned>(
      async (self) => {
        const handle = live ?? (await owners.revive(sessionId, segment.owner, self))
        if (handle === undefined) return { status: 'unknown', error: ownerGone(sessionId, segment) }
        slot?.moveTo(handle.provider)
        agents.pin(handle)
        pinned = handle
        if (typeof handle.agent.settleMemoryCommit !== 'function') return { status: 'committed' }
        const commit = commitOf(settings, sessionId, segment, self)
        return readSettleAnswer(await handle.agent.settleMemoryCommit(segment.receipt, commit)) ?? unreadable()
      },
      { clock: settings.clock, timeoutMs: settings.commitTimeoutMs, graceMs: settings.abandonGraceMs },
    )
    this.#calls.add(call)
    try {
      const result = await call.result
      if (call.abortedBy === 'closed') return
      await this.#conclude(sessionId, segment, learnedOf(result))
    } finally {
      this.#calls.delete(call)
      if (pinned !== undefined) agents.unpin(pinned)
      slot?.release()
    }
  }

  async #conclude(sessionId: string, segment: AcceptedSegment, learned: Learned): Promise<void> {
    const { settings, recorder } = this.#parts
    const { clock, random, retry, describeError } = settings
    const at = clock.now()
    switch (learned.status) {
      case 'committed':
        await recorder.record(sessionId, (state) => settleCommitted(state, segment))
        return
      case 'failed': {
        const failure = {
          at,
          retry,
          newKey: randomUUID(),
          chance: random(),
          error: describeError(learned.error),
          retryable: isRetryable(learned.error),
        }
        await recorder.record(sessionId, (state) => settleFailed(state, segment, failure))
        return
      }
      case 'pending':
      case 'unknown': {
        const askAt = at + retryDelay(segment.asks + 1, retry, random())
        const error = describeError(learned.status === 'unknown' ? learned.error : stillPending(segment))
        await recorder.record(sessionId, (state) => settlePending(state, segment, { at, askAt, error }))
        return
      }
      default:
        learned satisfies never
    }
  }
}

function learnedOf(result: Awaited<ProviderCall<Learned>['result']>): Learned {
  if (result === 'abandoned') {
    return {
      status: 'unknown',
      error: new TidemarkError('COMMIT_ABANDONED', 'The provider did not answer about its receipt in time.'),
    }
  }
  return result.kind === 'threw' ? { status: 'unknown', error: result.error } : result.value
}

function ownerGone(sessionId: string, segment: AcceptedSegment): TidemarkError {
  return new TidemarkError(
    'SETTLE_EXPIRED',
    'The owner of the receipt was not there to be asked, and could not be revived.',
    {
      details: { sessionId, from: segment.from, to: segment.to },
    },
  )
}

function stillPending(segment: AcceptedSegment): TidemarkError {
  return new TidemarkError(
    'SETTLE_EXPIRED',
    `The provider accepted the segment but did not finish it by the settle deadline; it was asked ${segment.asks + 1} times.`,
  )
}

function unreadable(): Learned {
  return {
    status: 'unknown',
    error: new TidemarkError(
      'COMMIT_ANSWER_INVALID',
      'settleMemoryCommit must return nothing, { status: "committed" }, { status: "pending" } or { status: "failed", error }.',
    ),
  }
}
