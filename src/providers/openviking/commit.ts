import { TidemarkError } from '../../base/errors.js'
import type { CommitAnswer, MemoryCommit } from '../../coordinator/agent.js'
import { failureOf, type OpenVikingApi, type SessionView, type TaskView } from './api.js'
import { batchesOf, countMessages, hasMessages } from './batches.js'
import type { Memo } from './memo.js'
import type { WireMessage } from './messages.js'
import { providerSessionId } from './naming.js'
import type { Settings } from './options.js'
import { isRecord, type Outcome } from './outcome.js'
import { archiveName, assess, carriersOf, verdictOf } from './plan.js'
import { writeReceipt, type Receipt } from './receipt.js'
import { extractionFailed, lookUp } from './settle.js'

/** More sessions than attempts anybody allows: something else is wrong then. */
const MAX_SERIES = 64

/**
 * One segment, exactly once, over an API that has no idempotency key.
 *
 * The segment has a provider session of its own, named by its key, so that the counts of that session speak of this
 * segment only and every earlier attempt can be read from the server. Two facts carry the rest:
 *
 * - Adding twice duplicates. So each message is sent into one session once. When a request got no answer and is not
 *   seen to have landed, it may still land: that session is given up and the next of the series is begun.
 *   A session is committed only when it holds exactly the messages of the segment; one that was given up never is.
 * - Committing twice does not: of two commits one is skipped. So once a commit was sent, the segment stays there.
 *
 * States of the newest session of the series, as the server tells them (plan.ts):
 * absent → create and fill · partial → the next of the series, unless this process knows that nothing is under way ·
 * full → commit · landed → receipt, or the next of the series when the extraction has failed.
 */
export class SegmentCommit {
  readonly #api: OpenVikingApi
  readonly #settings: Settings
  readonly #commit: MemoryCommit
  readonly #memo: Memo

  constructor(api: OpenVikingApi, settings: Settings, commit: MemoryCommit, memo: Memo) {
    this.#api = api
    this.#settings = settings
    this.#commit = commit
    this.#memo = memo
  }

  get #signal(): AbortSignal {
    return this.#commit.signal
  }

  #sessionId(series: number): string {
    return providerSessionId(this.#commit.sessionId, this.#commit.idempotencyKey, series)
  }

  async run(): Promise<CommitAnswer> {
    const newest = await this.#findNewest()
    if (newest === undefined) return this.#open(0)
    const { series, view } = newest
    const expected = await countMessages(this.#commit, this.#settings.peer)
    const tasks = await this.#listTasks(series)
    const found = assess(view, expected, tasks)
    this.#log({ series, found }, 'found an earlier attempt')
    switch (found) {
      case 'landed':
        // Failed for good: nothing more can come out of that session.
        if (verdictOf(tasks) === 'failed') return this.#open(series + 1)
        return this.#landed(series, expected, view, tasks)
      case 'full':
        return this.#send(series, expected)
      case 'partial-archived':
        return this.#fill(series, view.total ?? view.live)
      case 'partial': {
        const resumed = this.#memo.isQuiet(this.#commit.idempotencyKey, series)
        return resumed ? this.#fill(series, view.live) : this.#open(series + 1)
      }
      case 'spoilt':
        return this.#open(series + 1)
    }
  }

  async #findNewest(): Promise<{ series: number; view: SessionView } | undefined> {
    let newest: { series: number; view: SessionView } | undefined
    for (let series = 0; series <= MAX_SERIES; series += 1) {
      const outcome = await this.#api.session(this.#sessionId(series), this.#signal)
      if (outcome.kind === 'missing' && outcome.what === 'session') return newest
      if (outcome.kind !== 'ok') throw failureOf('session status', outcome)
      newest = { series, view: outcome.result }
    }
    return newest
  }

  async #open(series: number): Promise<CommitAnswer> {
    if (series >= MAX_SERIES)
      throw new TidemarkError(
        'PROVIDER_FAILED',
        `OpenViking has ${MAX_SERIES} unfinished sessions for one segment. Look at the server before you retry it.`,
        { retryable: false },
      )
    if (!(await hasMessages(this.#commit, this.#settings.peer))) return { status: 'nothing' }
    this.#log({ series }, 'begins a provider session')
    // Nothing was sent into it yet: if only its creation is in doubt, the next attempt may use it.
    this.#memo.setQuiet(this.#commit.idempotencyKey, series)
    await this.#create(series)
    return this.#fill(series, 0)
  }

  /** Also for servers that would create it on add: only here can auto commit be turned off, and v0.2.14–v0.3.4 need it. */
  async #create(series: number): Promise<void> {
    if (!this.#memo.namesWork) return
    const id = this.#sessionId(series)
    const outcome = await this.#api.createSession(id, this.#signal)
    if (outcome.kind === 'exists') return
    if (outcome.kind !== 'ok') throw failureOf('create', outcome)
    if (outcome.result === id) return
    // An old server names sessions itself, and adding creates; what it just made is of no use.
    this.#memo.namesWork = false
    await this.#api.deleteSession(outcome.result, this.#signal)
  }

  async #fill(series: number, have: number): Promise<CommitAnswer> {
    let added = have
    for await (const batch of batchesOf(this.#commit, this.#settings.peer, have)) {
      for (const messages of this.#memo.batchesWork ? [batch] : batch.map((message) => [message])) {
        await this.#add(series, added, messages)
        added += messages.length
      }
    }
    return this.#send(series, added)
  }

  async #add(series: number, before: number, messages: readonly WireMessage[]): Promise<void> {
    const id = this.#sessionId(series)
    this.#memo.setBusy(this.#commit.idempotencyKey)
    let outcome = await this.#addOnce(id, messages)
    if (outcome.kind === 'missing' && outcome.what === 'session') {
      // A server before v0.3.5, or a v0.4.12 directory without its live file.
      await this.#create(series)
      outcome = await this.#addOnce(id, messages)
    }
    if (outcome.kind === 'missing' && outcome.what === 'route' && this.#memo.batchesWork) {
      this.#memo.batchesWork = false
      for (const [index, message] of messages.entries()) await this.#add(series, before + index, [message])
      return
    }
    if (outcome.kind === 'ok' || (await this.#addLanded(series, before + messages.length, outcome))) return
    throw failureOf('add', outcome)
  }

  #addOnce(id: string, messages: readonly WireMessage[]): Promise<Outcome> {
    const [only] = messages
    return only !== undefined && !this.#memo.batchesWork
      ? this.#api.addOne(id, only, this.#signal)
      : this.#api.addBatch(id, messages, this.#signal)
  }

  /** Reads before anything is sent again. When the request is over and did not land, this session may be filled later. */
  async #addLanded(series: number, wanted: number, outcome: Outcome): Promise<boolean> {
    const over = outcome.kind !== 'failed' || outcome.over
    if (this.#signal.aborted) return false
    const seen = await this.#api.session(this.#sessionId(series), this.#signal)
    if (seen.kind !== 'ok') return false
    const added = seen.result.total ?? seen.result.live
    if (over) this.#memo.setQuiet(this.#commit.idempotencyKey, series)
    return added === wanted
  }

  async #send(series: number, expected: number): Promise<CommitAnswer> {
    const earlier = await this.#verifyFull(series, expected)
    const outcome = await this.#api.commit(this.#sessionId(series), this.#signal)
    if (outcome.kind === 'blocked') return this.#open(series + 1)
    if (outcome.kind === 'ok' && isRecord(outcome.result)) {
      const { task_id: task, archived, archive_uri: uri } = outcome.result
      if (typeof task === 'string') {
        const archive = typeof uri === 'string' ? (uri.split('/').at(-1) ?? '') : archiveName(1)
        return this.#accepted(this.#receipt(series, expected, [...earlier, task], archive))
      }
      // An old server that extracted before it answered.
      if (archived === true) return { status: 'committed' }
    }
    // Skipped proves nothing, and neither does an error: look.
    if (!this.#signal.aborted) {
      const view = await this.#api.session(this.#sessionId(series), this.#signal)
      if (view.kind === 'ok') {
        const tasks = await this.#listTasks(series)
        if (assess(view.result, expected, tasks) === 'landed') return this.#landed(series, expected, view.result, tasks)
      }
    }
    if (outcome.kind !== 'ok') throw failureOf('commit', outcome)
    throw new TidemarkError('PROVIDER_FAILED', 'OpenViking found nothing to commit, although the messages are there.', {
      retryable: true,
    })
  }

  /** The last look before the commit. Answers the tasks of what the server committed behind our back. */
  async #verifyFull(series: number, expected: number): Promise<readonly string[]> {
    const seen = await this.#api.session(this.#sessionId(series), this.#signal)
    if (seen.kind !== 'ok') throw failureOf('session status', seen)
    const { live, total, commits } = seen.result
    const archivedBehindUs = (commits ?? 0) > 0
    const added = total ?? live
    if (added === expected && !archivedBehindUs) return []
    if (archivedBehindUs && (total === undefined || added === expected)) {
      const tasks = await this.#listTasks(series)
      return carriersOf(tasks).map((task) => task.id)
    }
    this.#memo.setBusy(this.#commit.idempotencyKey)
    throw new TidemarkError(
      'PROVIDER_FAILED',
      `Expected ${expected} messages in the provider session, found ${added}; it is given up and the segment starts over.`,
      { retryable: true, details: { expected, found: added } },
    )
  }

  async #landed(
    series: number,
    expected: number,
    view: SessionView,
    tasks: readonly TaskView[],
  ): Promise<CommitAnswer> {
    const carriers = carriersOf(tasks)
    const verdict = verdictOf(carriers)
    if (verdict === 'failed') throw extractionFailed(this.#sessionId(series), carriers[0]?.id)
    if (verdict === 'completed' && carriers.length === tasks.length) return { status: 'committed' }
    const ids = carriers.map((task) => task.id)
    return this.#accepted(this.#receipt(series, expected, ids, archiveName(Math.max(1, view.commits ?? 1))), true)
  }

  /** With `cleanWhen: 'accepted'` an acceptance that was only inferred is looked at once: a skip may hide a failure. */
  async #accepted(receipt: Receipt, inferred = false): Promise<CommitAnswer> {
    if (this.#settings.cleanWhen === 'extracted') return { status: 'accepted', receipt: writeReceipt(receipt) }
    if (inferred) {
      const answer = await lookUp(this.#api, receipt, this.#signal)
      if (answer.status === 'failed') throw answer.error
    }
    return { status: 'committed' }
  }

  #receipt(series: number, messages: number, tasks: readonly string[], archive: string): Receipt {
    const givenUp = Array.from({ length: series }, (_, index) => this.#sessionId(index))
    return { session: this.#sessionId(series), givenUp, messages, tasks, archive }
  }

  async #listTasks(series: number): Promise<readonly TaskView[]> {
    const outcome = await this.#api.tasks(this.#sessionId(series), this.#signal)
    if (outcome.kind !== 'ok') throw failureOf('task list', outcome)
    return outcome.result
  }

  #log(fields: object, message: string): void {
    const { sessionId, from, to, attempt } = this.#commit
    this.#settings.logger.debug({ provider: 'openviking', sessionId, from, to, attempt, ...fields }, message)
  }
}
