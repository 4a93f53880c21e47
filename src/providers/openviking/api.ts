import { TidemarkError } from '../../base/errors.js'
import { send } from './http.js'
import type { WireMessage } from './messages.js'
import type { Settings } from './options.js'
import { isRecord, judge, type Failure, type Outcome } from './outcome.js'

export interface SessionView {
  /** Messages that are not archived yet. */
  readonly live: number
  /** Messages ever added; servers before v0.3.13 do not say. */
  readonly total: number | undefined
  /** Archives made; servers before v0.2.11 do not say. */
  readonly commits: number | undefined
}

export type TaskState = 'open' | 'completed' | 'failed'

export interface TaskView {
  readonly id: string
  readonly state: TaskState
}

type Answered<T> = { readonly kind: 'ok'; readonly result: T } | Exclude<Outcome, { kind: 'ok' }>

const sessionPath = (id: string): string => `/api/v1/sessions/${encodeURIComponent(id)}`

/** The calls the adapter needs, each a value: nothing here throws for what the server says. */
export class OpenVikingApi {
  readonly #settings: Settings

  constructor(settings: Settings) {
    this.#settings = settings
  }

  async #read(path: string, signal?: AbortSignal): Promise<Outcome> {
    const timeoutMs = this.#settings.readTimeoutMs
    return judge(await send(this.#settings, { method: 'GET', path, timeoutMs, signal }))
  }

  async #write(path: string, body: unknown, signal?: AbortSignal): Promise<Outcome> {
    const timeoutMs = this.#settings.writeTimeoutMs
    return judge(await send(this.#settings, { method: 'POST', path, body, timeoutMs, signal }))
  }

  async session(id: string, signal: AbortSignal): Promise<Answered<SessionView>> {
    return map(await this.#read(sessionPath(id), signal), (result) => {
      const live = numberOf(result['message_count'])
      if (live === undefined) return undefined
      return { live, total: numberOf(result['total_message_count']), commits: numberOf(result['commit_count']) }
    })
  }

  /** Answers the id that came out: servers before v0.3 choose one themselves. No auto commit: boundaries are ours. */
  async createSession(id: string, signal: AbortSignal): Promise<Answered<string>> {
    const wanted = { session_id: id, auto_commit_policy: null }
    let outcome = await this.#write('/api/v1/sessions', wanted, signal)
    // A server that does not know the policy has no auto commit either.
    if (outcome.kind === 'failed' && outcome.status === 400)
      outcome = await this.#write('/api/v1/sessions', { session_id: id }, signal)
    return map(outcome, (result) => (typeof result['session_id'] === 'string' ? result['session_id'] : undefined))
  }

  async deleteSession(id: string, signal: AbortSignal): Promise<Outcome> {
    const { writeTimeoutMs: timeoutMs } = this.#settings
    return judge(await send(this.#settings, { method: 'DELETE', path: sessionPath(id), timeoutMs, signal }))
  }

  addBatch(id: string, messages: readonly WireMessage[], signal: AbortSignal): Promise<Outcome> {
    return this.#write(`${sessionPath(id)}/messages/batch`, { messages }, signal)
  }

  addOne(id: string, message: WireMessage, signal: AbortSignal): Promise<Outcome> {
    return this.#write(`${sessionPath(id)}/messages`, message, signal)
  }

  /** `wait=false` means something to v0.2.6–v0.2.10 only: there, too, the answer is a task and not the extraction. */
  commit(id: string, signal: AbortSignal): Promise<Outcome> {
    return this.#write(`${sessionPath(id)}/commit?wait=false`, { keep_recent_count: 0 }, signal)
  }

  async task(id: string, signal: AbortSignal): Promise<Answered<TaskView>> {
    return map(await this.#read(`/api/v1/tasks/${encodeURIComponent(id)}`, signal), taskOf)
  }

  /** The commit tasks of one session, newest first. */
  async tasks(sessionId: string, signal: AbortSignal): Promise<Answered<readonly TaskView[]>> {
    const query = new URLSearchParams({ task_type: 'session_commit', resource_id: sessionId })
    const outcome = await this.#read(`/api/v1/tasks?${query.toString()}`, signal)
    if (outcome.kind !== 'ok') return outcome
    if (!Array.isArray(outcome.result)) return malformed
    const tasks = outcome.result.map((each: unknown) => (isRecord(each) ? taskOf(each) : undefined))
    return { kind: 'ok', result: tasks.filter((task) => task !== undefined) }
  }

  /** How many messages a finished archive holds; pending and failed ones are missing. */
  async archive(sessionId: string, name: string, signal: AbortSignal): Promise<Answered<number>> {
    const outcome = await this.#read(`${sessionPath(sessionId)}/archives/${name}`, signal)
    return map(outcome, (result) => (Array.isArray(result['messages']) ? result['messages'].length : 0))
  }

  async context(sessionId: string, signal: AbortSignal): Promise<Answered<ContextView>> {
    return map(await this.#read(`${sessionPath(sessionId)}/context?token_budget=0`, signal), (result) => {
      const stats = isRecord(result['stats']) ? result['stats'] : {}
      return {
        messages: Array.isArray(result['messages']) ? result['messages'].length : 0,
        archives: numberOf(stats['totalArchives']) ?? 0,
        failed: numberOf(stats['failedArchives']) ?? 0,
      }
    })
  }

  async search(request: SearchRequest, signal: AbortSignal | undefined): Promise<Outcome> {
    const { peer, readTimeoutMs: timeoutMs } = this.#settings
    const { query, limit, providerSession } = request
    const path = providerSession === undefined ? '/api/v1/search/find' : '/api/v1/search/search'
    const body = { query, limit, ...(providerSession !== undefined && { session_id: providerSession }) }
    const headers = peer === undefined ? {} : { 'x-openviking-actor-peer': peer }
    return judge(await send(this.#settings, { method: 'POST', path, body, timeoutMs, signal, headers }))
  }

  /** Not `/ready`: that fails when the embedding model is away, while commits are still archived. */
  async health(signal: AbortSignal | undefined): Promise<Answered<Record<string, unknown>>> {
    const timeoutMs = this.#settings.readTimeoutMs
    const reply = await send(this.#settings, { method: 'GET', path: '/health', timeoutMs, signal })
    if (reply.kind === 'answer' && reply.status === 200 && isRecord(reply.body))
      return { kind: 'ok', result: reply.body }
    const outcome = judge(reply)
    return outcome.kind === 'failed' ? outcome : malformed
  }
}

export interface ContextView {
  readonly messages: number
  readonly archives: number
  readonly failed: number
}

export interface SearchRequest {
  readonly query: string
  readonly limit: number
  readonly providerSession: string | undefined
}

const malformed: Failure = Object.freeze({
  kind: 'failed',
  retryable: true,
  over: true,
  aborted: false,
  code: 'UNEXPECTED_ANSWER',
})

function map<T>(outcome: Outcome, read: (result: Record<string, unknown>) => T | undefined): Answered<T> {
  if (outcome.kind !== 'ok') return outcome
  const result = isRecord(outcome.result) ? read(outcome.result) : undefined
  return result === undefined ? malformed : { kind: 'ok', result }
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Decided on the status only: a result may be there while the task still runs. */
function taskOf(value: Record<string, unknown>): TaskView | undefined {
  const { task_id: id, status } = value
  if (typeof id !== 'string' || typeof status !== 'string') return undefined
  const state = status === 'completed' ? 'completed' : status === 'failed' || status === 'cancelled' ? 'failed' : 'open'
  return { id, state }
}

/** An outcome that ends an attempt, told without the server's own words: they may quote what was sent. */
export function failureOf(operation: string, outcome: Exclude<Outcome, { kind: 'ok' }>): TidemarkError {
  if (outcome.kind === 'failed' && outcome.aborted)
    return new TidemarkError('ABORTED', `OpenViking ${operation} was aborted before the server answered.`, {
      retryable: true,
    })
  const { code, status, where, retryable } = outcome.kind === 'failed' ? outcome : described(outcome)
  const details = { operation, code, ...(status !== undefined && { status }), ...(where !== undefined && { where }) }
  const shown = `${code}${status === undefined ? '' : ` (HTTP ${status})`}${where === undefined ? '' : ` at ${where}`}`
  const advice = retryable
    ? 'The work is kept and may be tried again.'
    : 'The work is kept; trying again will not help before server or options are changed.'
  return new TidemarkError('PROVIDER_FAILED', `OpenViking ${operation} failed with ${shown}. ${advice}`, {
    retryable,
    details,
  })
}

/** A route that is not there stays away; a session that is not there can be made again. */
function described(
  outcome: Exclude<Outcome, { kind: 'ok' } | Failure>,
): Pick<Failure, 'code' | 'retryable' | 'status' | 'where'> {
  if (outcome.kind !== 'missing') return { code: outcome.kind.toUpperCase(), retryable: true }
  return { code: `NOT_FOUND_${outcome.what.toUpperCase()}`, status: 404, retryable: outcome.what !== 'route' }
}
