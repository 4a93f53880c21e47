import { randomUUID } from 'node:crypto'
import { resolve } from 'node:path'
import { systemClock } from '../../base/clock.js'
import { TidemarkError } from '../../base/errors.js'
import { silentLogger } from '../../base/logger.js'
import { answer, type Decision, emptySession, isFinished, type OutboxEntry } from '../../core/index.js'
import type { Decide, Ledger, LedgerHealth, LedgerStats, SessionEntry } from '../ledger.js'
import { Batch, type RowNumbers } from './batch.js'
import { CachedSession } from './cached-session.js'
import { countChanges } from './changes.js'
import { describeFailure, ledgerFailed, openFailed, releaseFrames } from './failure.js'
import { findKept } from './files.js'
import type { StoreCalls, StoreHost } from './host.js'
import type { SqliteLedgerOptions } from './options.js'
import type { PageCursor } from './session-reader.js'
import { findHeads } from './session-row.js'
import { WriteBehind } from './write-behind.js'

interface Job {
  readonly sessionId: string
  readonly decide: Decide<unknown>
  readonly resolve: (decision: Decision<never>) => void
  readonly reject: (error: unknown) => void
}

/** Tidying waits for a quiet moment, but not for ever: under load every n-th batch is followed by a slice of it. */
const TIDY_EVERY_BATCHES = 16
/** So often the file is looked at for space to give back. */
const LOOK_EVERY_BATCHES = 256

const KEPT_ASIDE =
  'a damaged ledger was kept aside, and this one knows nothing of its turns: restore a backup, ' +
  'or remove the files that were kept'

/**
 * The life of a change. `transact` queues it; one batch at a time takes the whole queue, reads the sessions that are
 * not in the cache, lets every caller decide in turn, and hands all changed rows to the file in one transaction. Only
 * after the COMMIT are the promises resolved, those of decisions that changed nothing too: what they saw must be
 * durable. If anything fails, all callers of the batch are refused, the cache and the handle are thrown away, and the
 * next call opens the file anew.
 */
export class SqliteLedger implements Ledger {
  readonly supports = Object.freeze({ persistent: true, shared: false })
  readonly instance: string = randomUUID()
  readonly #path: string
  readonly #options: SqliteLedgerOptions
  readonly #createHost: (at: number) => StoreHost
  /** Sessions with work that is not done; all others are read back when somebody asks for them. */
  readonly #cache = new Map<string, CachedSession>()
  readonly #numbers: RowNumbers = { nextSession: 1, nextOutbox: 1 }
  readonly #behind: WriteBehind
  #queue: Job[] = []
  #isScheduled = false
  #running: Promise<void> | undefined
  #host: StoreHost | undefined
  #opening: Promise<StoreHost> | undefined
  #letGo: Promise<void> = Promise.resolve()
  #failure: string | undefined
  #damage: string | undefined
  /** Why the file cannot be opened anew: it is damaged and lies aside. To go on would mean to begin with an empty one. */
  #lost: TidemarkError | undefined
  #closing: Promise<void> | undefined
  #batches = 0
  #hasMoreToTidy = true

  constructor(options: SqliteLedgerOptions, createHost: (at: number) => StoreHost, behind = new WriteBehind()) {
    this.#path = resolve(options.path)
    this.#options = options
    this.#createHost = createHost
    this.#behind = behind
  }

  /** Whoever opens a ledger by name has seen what was wrong before. */
  async open(): Promise<void> {
    this.#lost = undefined
    await this.#readyToAsk()
  }

  /** The file is locked for this process: whoever else is named in a claim is gone. */
  isAlive(instance: string): boolean {
    return instance === this.instance
  }

  transact<R>(sessionId: string, decide: Decide<R>): Promise<Decision<R>> {
    return new Promise((resolve, reject) => {
      if (this.#closing !== undefined) {
        reject(closed(this.#path))
        return
      }
      this.#queue.push({ sessionId, decide, resolve, reject })
      this.#schedule()
    })
  }

  /** Once per turn of the event loop: everything that arrives in it shares one transaction. */
  #schedule(): void {
    if (this.#isScheduled || this.#running !== undefined) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      // A close that came meanwhile works the queue off by itself.
      if (this.#running === undefined) void this.#run(this.#work())
    })
  }

  /** One thing at a time. Even one that has nothing to wait for is over only after it was noted: or the note would stay. */
  #run(work: Promise<void>): Promise<void> {
    this.#running = work.finally(() => {
      this.#running = undefined
      if (this.#queue.length > 0 || this.#hasMoreToTidy) this.#schedule()
    })
    return this.#running
  }

  async #work(): Promise<void> {
    const jobs = this.#queue
    this.#queue = []
    if (jobs.length > 0) await this.#runBatch(jobs)
    this.#batches += 1
    if (this.#batches % LOOK_EVERY_BATCHES === 0) this.#hasMoreToTidy = true
    if (this.#hasMoreToTidy && (jobs.length === 0 || this.#batches % TIDY_EVERY_BATCHES === 0)) await this.#tidy()
  }

  async #runBatch(jobs: readonly Job[]): Promise<void> {
    const outcomes: ({ decision: Decision<unknown> } | { error: unknown })[] = []
    try {
      const host = this.#host ?? (await this.#ready())
      const missing = this.#findMissing(jobs)
      const damaged = missing === undefined ? undefined : await this.#load(host, missing)
      const batch = new Batch(this.#numbers, this.#behind)
      for (const job of jobs) outcomes.push(damaged?.get(job.sessionId) ?? this.#decide(batch, job))
      const changes = batch.finish('old')
      if (changes.dropped.length > 0) this.#hasMoreToTidy = true
      if (countChanges(changes) > 0) {
        const applied = host.call('apply', changes)
        if (applied !== undefined) await applied
      }
    } catch (error) {
      const refusal = error === this.#lost ? error : ledgerFailed(this.#path, error)
      for (const job of jobs) job.reject(refusal)
      if (error !== this.#lost) this.#fail(error)
      return
    }
    for (const [index, job] of jobs.entries()) {
      const outcome = outcomes[index]
      if (outcome !== undefined && 'decision' in outcome) job.resolve(outcome.decision as Decision<never>)
      else job.reject(outcome?.error)
      const session = this.#cache.get(job.sessionId)
      if (session !== undefined && isFinished(session.state)) this.#cache.delete(job.sessionId)
    }
  }

  #decide(batch: Batch, job: Job): { decision: Decision<unknown> } | { error: unknown } {
    const session = this.#cache.get(job.sessionId)
    if (session === undefined) throw new Error('a session of the batch was not read')
    try {
      const decision = job.decide(session.state)
      if (decision.state !== session.state) batch.record(session, decision)
      return { decision }
    } catch (error) {
      return { error }
    }
  }

  #findMissing(jobs: readonly Job[]): string[] | undefined {
    let missing: Set<string> | undefined
    for (const { sessionId } of jobs) if (!this.#cache.has(sessionId)) (missing ??= new Set()).add(sessionId)
    return missing === undefined ? undefined : [...missing]
  }

  /** Reads sessions into the cache. Gives those that cannot be used. */
  async #load(host: StoreHost, sessionIds: string[]): Promise<Map<string, { error: unknown }>> {
    const damaged = new Map<string, { error: unknown }>()
    const loaded = await host.call('load', sessionIds)
    for (const [index, sessionId] of sessionIds.entries()) {
      const found = loaded[index]
      if (found !== undefined && 'damage' in found) {
        this.#reportDamage(found.damage)
        damaged.set(sessionId, { error: new TidemarkError('CORRUPT', found.damage) })
      } else this.#cache.set(sessionId, new CachedSession(found?.record ?? unknownSession(sessionId)))
    }
    return damaged
  }

  /** The open file. Whoever comes first opens it; after a failure that is the next call. */
  #ready(): Promise<StoreHost> {
    if (this.#host !== undefined) return Promise.resolve(this.#host)
    this.#opening ??= this.#open().finally(() => (this.#opening = undefined))
    return this.#opening
  }

  /** For questions: the work that was asked for before a close may still open the file, nothing else. */
  async #readyToAsk(): Promise<StoreHost> {
    if (this.#closing !== undefined) throw closed(this.#path)
    return this.#ready()
  }

  async #open(): Promise<StoreHost> {
    if (this.#lost !== undefined) throw this.#lost
    await this.#letGo
    const host = this.#createHost((this.#options.clock ?? systemClock).now())
    try {
      await host.open()
      const { nextSession, nextOutbox } = await host.call('numbers')
      this.#numbers.nextSession = Math.max(this.#numbers.nextSession, nextSession)
      // Never backwards: a reader may still hold the number of a row that is gone.
      this.#numbers.nextOutbox = Math.max(this.#numbers.nextOutbox, nextOutbox)
      this.#behind.reset(nextOutbox - 1)
    } catch (error) {
      releaseFrames(error)
      this.#letGo = host.abandon()
      this.#failure = describeFailure(error)
      const refusal = openFailed(this.#path, error)
      if (refusal.code === 'CORRUPT') {
        this.#lost = refusal
        this.#logger.error({ err: refusal, path: this.#path }, 'the ledger is damaged; nothing more is recorded in it')
      }
      throw refusal
    }
    await this.#reportKept()
    if (this.#failure !== undefined) this.#logger.info({ path: this.#path }, 'the ledger is open again')
    this.#failure = undefined
    this.#host = host
    return host
  }

  get #logger(): NonNullable<SqliteLedgerOptions['logger']> {
    return this.#options.logger ?? silentLogger
  }

  /** What failed is not asked again whether it works now: a second sync may report success for lost data. */
  #fail(error: unknown): void {
    const host = this.#host
    releaseFrames(error)
    this.#failure = describeFailure(error)
    this.#cache.clear()
    this.#behind.reset(0)
    this.#host = undefined
    if (host !== undefined) this.#letGo = host.abandon()
    this.#logger.error({ err: error, path: this.#path }, 'the ledger failed; the next call opens it anew')
  }

  /** Whoever restarts a process whose ledger was damaged gets an empty one: that must not go unnoticed. */
  async #reportKept(): Promise<void> {
    const path = this.#path
    try {
      const kept = await findKept(path)
      if (kept.length > 0) this.#logger.warn({ path, kept }, KEPT_ASIDE)
    } catch (error) {
      this.#logger.warn({ err: error, path }, 'whether damaged ledgers lie beside this one could not be found out')
    }
  }

  async #tidy(): Promise<void> {
    if (this.#host === undefined) {
      this.#hasMoreToTidy = false
      return
    }
    try {
      this.#hasMoreToTidy = await this.#host.call('tidy')
    } catch (error) {
      this.#hasMoreToTidy = false
      this.#fail(error)
    }
  }

  /** Writes the rows of all sessions that are behind. If that fails, opening the file anew does it. */
  async #settle(): Promise<void> {
    while (this.#running !== undefined) await this.#running
    await this.#run(this.#writeAll())
  }

  async #writeAll(): Promise<void> {
    if (this.#host === undefined) return
    try {
      const changes = new Batch(this.#numbers, this.#behind).finish('all')
      if (countChanges(changes) > 0) await this.#host.call('apply', changes)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** A question to the file outside of a batch. */
  async #ask<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): Promise<ReturnType<StoreCalls[Name]>> {
    return this.#askOf(await this.#readyToAsk(), name, ...args)
  }

  async #askOf<Name extends keyof StoreCalls>(
    host: StoreHost,
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): Promise<ReturnType<StoreCalls[Name]>> {
    if (this.#closing !== undefined) throw closed(this.#path)
    try {
      return await host.call(name, ...args)
    } catch (error) {
      if (error instanceof TidemarkError) {
        this.#reportDamage(error.message)
        throw error
      }
      if (this.#host === host) this.#fail(error)
      throw ledgerFailed(this.#path, error)
    }
  }

  async *sessions(which: 'unfinished' | 'all'): AsyncGenerator<SessionEntry> {
    let cursor: PageCursor | undefined
    for (;;) {
      if (!this.#behind.isEmpty) await this.#settle()
      const page = await this.#ask('page', which, cursor)
      for (const finding of page.damages) this.#reportDamage(finding)
      for (const { sessionId, state } of page.records) yield { sessionId, state }
      if (page.next === undefined) return
      cursor = page.next
    }
  }

  /** One damaged session must not keep all others from being taken up again; but it must be heard of. */
  #reportDamage(finding: string): void {
    this.#damage = finding
    this.#logger.error({ path: this.#path }, finding)
  }

  async *outbox(sessionId: string, from: number, to: number): AsyncGenerator<OutboxEntry> {
    const found = await this.#findOutbox(sessionId, from, to)
    if (found === undefined) return
    const { session, ids } = found
    for (let done = 0; done < ids.length;) {
      const { entries, read } = await this.#ask('outboxPage', session, ids.slice(done, done + 256))
      yield* entries
      done += read
    }
  }

  /** Nothing if all turns are committed. That a session is not in the cache does not say so: a failure empties it. */
  async #findOutbox(
    sessionId: string,
    from: number,
    to: number,
  ): Promise<{ session: number; ids: readonly number[] } | undefined> {
    for (;;) {
      const session = this.#cache.get(sessionId)
      if (session !== undefined && this.#host !== undefined) {
        // Nothing may come between: these rows can be dropped by the next batch.
        const ids = await this.#askOf(this.#host, 'outboxRows', session.id, findHeads(session, from, to), from, to)
        return { session: session.id, ids }
      }
      const { state } = await this.transact(sessionId, (known) => answer(known, undefined))
      if (isFinished(state)) return undefined
    }
  }

  async stats(): Promise<LedgerStats> {
    return this.#ask('stats')
  }

  health(): LedgerHealth {
    if (this.#closing !== undefined) return { status: 'unhealthy', reason: 'closed' }
    const reason = this.#failure ?? this.#damage
    return reason === undefined ? { status: 'ok' } : { status: 'unhealthy', reason }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  /** What was asked for before is still made durable. */
  async #close(): Promise<void> {
    this.#hasMoreToTidy = false
    while (this.#queue.length > 0 || this.#running !== undefined) {
      await (this.#running ?? this.#run(this.#work()))
    }
    await this.#opening?.catch(() => undefined)
    await this.#settle()
    const host = this.#host
    this.#host = undefined
    this.#cache.clear()
    await this.#letGo
    await host?.close()
  }
}

function unknownSession(sessionId: string): {
  sessionId: string
  id: number
  state: typeof emptySession
  tailHead: number
  heads: undefined
} {
  return { sessionId, id: 0, state: emptySession, tailHead: 0, heads: undefined }
}

function closed(path: string): TidemarkError {
  return new TidemarkError('CLOSED', `The ledger ${path} is closed; nothing more can be recorded in it.`, {
    details: { path },
  })
}
