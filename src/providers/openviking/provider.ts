import { TidemarkError } from '../../base/errors.js'
import type { CommitAnswer, CompletedTurn, MemoryAgent, MemoryCommit, SettleAnswer } from '../../coordinator/agent.js'
import { failureOf, OpenVikingApi } from './api.js'
import { SegmentCommit } from './commit.js'
import { Memo } from './memo.js'
import { readOptions, type OpenVikingOptions, type Settings } from './options.js'
import { formatRecalled } from './recall.js'
import { readReceipt, type Receipt } from './receipt.js'
import { lookUp } from './settle.js'
import { underSignals } from './signals.js'

export interface RecallOptions {
  /** Lets the server read the query in the light of what this session last committed, if this process did it. */
  readonly sessionId?: string
  /** How many memories at most. @default 10 */
  readonly limit?: number
  readonly signal?: AbortSignal
}

export type OpenVikingHealth =
  | { readonly status: 'ok'; readonly version: string | undefined; readonly authMode: string | undefined }
  | { readonly status: 'unreachable'; readonly reason: string }

const SHORTEST_POLL_MS = 500
const LONGEST_POLL_MS = 10_000

/**
 * OpenViking as a memory provider: `agent()` for the coordinator, `recall()` for prompts. "Accepted" is not "extracted":
 * a commit answers with a receipt, and only a completed task settles it.
 */
export class OpenVikingProvider {
  readonly #settings: Settings
  readonly #api: OpenVikingApi
  readonly #memo = new Memo()
  readonly #closing = new AbortController()
  /** By key: an attempt that was abandoned may still be on its way out when the next one starts. */
  readonly #running = new Map<string, Promise<unknown>>()
  /** The last provider session of a session, for recall; bounded. */
  readonly #latest = new Map<string, string>()

  constructor(options: OpenVikingOptions) {
    this.#settings = readOptions(options)
    this.#api = new OpenVikingApi(this.#settings)
  }

  /**
   * The agent of a session. It is stateless, and its identity is that of the tenant: after a restart, or when the
   * session goes on under another id, `agent()` gives one that may commit what this one left.
   */
  agent(sessionId: string): MemoryAgent {
    if (typeof sessionId !== 'string' || sessionId === '') throw new TypeError('sessionId must be a non-empty string')
    const { account, user } = this.#settings
    return {
      agentId: account === undefined || user === undefined ? 'openviking' : `openviking:${account}/${user}`,
      provider: 'openviking',
      commitMemorySession: (commit) => this.#commit(commit),
      settleMemoryCommit: (receipt, commit) => this.#settle(readReceipt(receipt), commit),
    }
  }

  /** What is remembered about the query, as a marked block for a prompt; empty when there is nothing. */
  async recall(query: string, options: RecallOptions = {}): Promise<string> {
    if (typeof query !== 'string' || query.trim() === '') throw new TypeError('query must be a non-empty string')
    const limit = options.limit ?? 10
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > 1000)
      throw new TypeError(`limit must be a whole number from 1 to 1000, not ${limit}`)
    this.#refuseWhenClosed()
    const providerSession = options.sessionId === undefined ? undefined : this.#latest.get(options.sessionId)
    const outcome = await this.#bounded(options.signal, (signal) =>
      this.#api.search({ query, limit, providerSession }, signal),
    )
    if (outcome.kind !== 'ok') throw failureOf('search', outcome)
    return formatRecalled(outcome.result, limit)
  }

  /** Whether the server answers. It says nothing about the key: `/health` is open to everybody. */
  async health(signal?: AbortSignal): Promise<OpenVikingHealth> {
    this.#refuseWhenClosed()
    const answer = await this.#bounded(signal, (bounded) => this.#api.health(bounded))
    if (answer.kind !== 'ok')
      return { status: 'unreachable', reason: answer.kind === 'failed' ? answer.code : 'UNEXPECTED_ANSWER' }
    const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
    const { version, auth_mode } = answer.result
    return { status: 'ok', version: text(version), authMode: text(auth_mode) }
  }

  /** Ends every request under way; what was sent is found again by the next attempt. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#running.values())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #commit(given: MemoryCommit): Promise<CommitAnswer> {
    this.#refuseWhenClosed()
    return this.#bounded(given.signal, async (signal) => {
      const { sessionId, from, to, attempt, reason, idempotencyKey: key } = given
      const turns = (): AsyncIterable<CompletedTurn> => given.turns()
      const commit: MemoryCommit = { sessionId, from, to, attempt, reason, idempotencyKey: key, signal, turns }
      // One writer a provider session: the earlier attempt ends first, and then the server is read.
      while (this.#running.has(key)) await settled(this.#running.get(key), signal)
      const running = new SegmentCommit(this.#api, this.#settings, commit, this.#memo).run()
      this.#running.set(key, running)
      try {
        const answer = await running
        if (answer.status === 'accepted') this.#remember(sessionId, readReceipt(answer.receipt).session)
        return answer
      } finally {
        this.#running.delete(key)
      }
    })
  }

  #settle(receipt: Receipt, commit: MemoryCommit): Promise<SettleAnswer> {
    this.#refuseWhenClosed()
    return this.#bounded(commit.signal, async (signal) => {
      const answer = await this.#watch(receipt, signal)
      const { sessionId, from, to } = commit
      if (answer.status === 'committed') await this.#deleteGivenUp(receipt, signal)
      if (answer.status === 'failed')
        this.#settings.logger.warn(
          { provider: 'openviking', sessionId, from, to, err: answer.error },
          'extraction failed; the segment goes to a fresh provider session',
        )
      return answer
    })
  }

  async #watch(receipt: Receipt, signal: AbortSignal): Promise<SettleAnswer> {
    const { clock, settlePollMs } = this.#settings
    const deadline = clock.now() + settlePollMs
    for (let delay = SHORTEST_POLL_MS; ; delay = Math.min(delay * 2, LONGEST_POLL_MS)) {
      const answer = await lookUp(this.#api, receipt, signal)
      if (answer.status !== 'pending' || clock.now() + delay > deadline) return answer
      await pause(this.#settings, delay, signal)
    }
  }

  /** Sessions that were begun and never committed. Not earlier: until now they were the trace of where to go on. */
  async #deleteGivenUp(receipt: Receipt, signal: AbortSignal): Promise<void> {
    for (const id of receipt.givenUp) {
      const seen = await this.#api.session(id, signal)
      if (seen.kind !== 'ok' || (seen.result.commits ?? 0) > 0) continue
      const outcome = await this.#api.deleteSession(id, signal)
      if (outcome.kind === 'failed')
        this.#settings.logger.debug({ provider: 'openviking', providerSession: id, code: outcome.code }, 'left behind')
    }
  }

  #remember(sessionId: string, providerSession: string): void {
    this.#latest.delete(sessionId)
    this.#latest.set(sessionId, providerSession)
    const [oldest] = this.#latest.keys()
    if (this.#latest.size > 1000 && oldest !== undefined) this.#latest.delete(oldest)
  }

  #bounded<T>(signal: AbortSignal | undefined, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return underSignals([signal, this.#closing.signal], run)
  }

  #refuseWhenClosed(): void {
    if (this.#closing.signal.aborted)
      throw new TidemarkError('CLOSED', 'This OpenViking provider is closed. Make a new one.', { retryable: true })
  }
}

/** Waits for another attempt's end, whatever it is, or for the own signal. */
function settled(other: Promise<unknown> | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void =>
      reject(new TidemarkError('ABORTED', 'Aborted while an earlier attempt was ending.', { retryable: true }))
    if (signal.aborted) {
      abort()
      return
    }
    signal.addEventListener('abort', abort, { once: true })
    const done = (): void => {
      signal.removeEventListener('abort', abort)
      resolve()
    }
    void Promise.resolve(other).then(done, done)
  })
}

function pause(settings: Settings, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      cancel()
      reject(new TidemarkError('ABORTED', 'Settlement was aborted; it is asked again.', { retryable: true }))
    }
    const cancel = settings.clock.setTimer(() => {
      signal.removeEventListener('abort', abort)
      resolve()
    }, delayMs)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
  })
}
