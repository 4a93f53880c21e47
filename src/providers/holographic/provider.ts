import { setImmediate } from 'node:timers/promises'
import { TidemarkError } from '../../base/errors.js'
import type { MemoryAgent, MemoryCommit } from '../../coordinator/agent.js'
import { About } from './about.js'
import { createAgent, type LearnedFact } from './agent.js'
import type { Connection } from './connection.js'
import { cleanCategory, cleanContent, cleanTags, timestamp } from './content.js'
import { asStatement, findConflicts } from './contradict.js'
import { openDatabase, type OpenDatabase } from './database.js'
import { asFactRow, asFacts, FACT_COLUMNS, readFacts, type FactRow } from './fact-rows.js'
import { requireRange, settle, type HolographicOptions, type Settings } from './options.js'
import type { Weighing } from './ranking.js'
import { Search } from './search.js'
import { FactStore, notFound } from './store.js'
import { handleToolCall } from './tool-calls.js'
import { RATINGS, toolSchemas, type Rating, type ToolSchema } from './tools.js'
import type { Contradiction, Fact, FactPatch } from './types.js'
import { VectorSpace } from './vectors.js'

const DEFAULT_LIMIT = 10
const RECALL_LIMIT = 5
const LARGEST_LIMIT = 1_000
/** Of a pasted page only the beginning is a question: every word costs a vector, on the thread of the caller. */
const LONGEST_QUESTION = 2_048
const MOST_ENTITIES_ASKED = 16
/** How many facts, newest first, are compared in search of contradictions. */
const COMPARED_FACTS = 2_000
const ADOPTED_AT_ONCE = 500
const TRUST_STEP = { helpful: 0.05, unhelpful: -0.1 } as const

/** An embedded memory: facts, who they are about, how far they are trusted. One file, no server, no key. */
export class HolographicProvider {
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #store: FactStore
  readonly #search: Search
  readonly #about: About

  private constructor(database: OpenDatabase, settings: Settings) {
    const { connection, dimensions, format } = database
    const space = new VectorSpace(dimensions)
    this.#connection = connection
    this.#settings = settings
    this.#store = new FactStore(connection, space, format)
    this.#search = new Search(connection, space, this.#store.names, settings.hrrWeight)
    this.#about = new About(connection, space, this.#store.names)
  }

  /** Refuses a file that is damaged, foreign, newer, or of another dimension, and leaves it as it is. */
  static async open(options: HolographicOptions): Promise<HolographicProvider> {
    const settings = settle(options)
    const provider = new HolographicProvider(await openDatabase(settings), settings)
    try {
      await provider.#adoptAll()
    } catch (error) {
      await provider.close()
      throw error
    }
    return provider
  }

  /** Stores a statement. Known content stays as it is, with its category and tags; what was deleted may come back this way. */
  add(
    content: string,
    options: { readonly category?: string; readonly tags?: readonly string[] } = {},
  ): Promise<{ id: number; added: boolean }> {
    return this.#change((now) => {
      const fact = {
        content: cleanContent(content),
        category: cleanCategory(options.category ?? 'general'),
        tags: cleanTags(options.tags ?? []),
        trust: this.#settings.defaultTrust,
      }
      return this.#store.write(now, () => {
        this.#store.exhume(fact.content)
        return this.#store.add(fact, now)
      })
    })
  }

  update(id: number, patch: FactPatch): Promise<Fact> {
    return this.#change((now) => {
      requireId(id)
      if (patch.trustDelta !== undefined) requireRange('trustDelta', patch.trustDelta, -1, 1)
      const change = {
        ...(patch.content === undefined ? {} : { content: cleanContent(patch.content) }),
        ...(patch.category === undefined ? {} : { category: cleanCategory(patch.category) }),
        ...(patch.tags === undefined ? {} : { tags: cleanTags(patch.tags) }),
      }
      return this.#store.write(now, () => {
        const trust = patch.trustDelta === undefined ? {} : { trust: clamp(this.#fact(id).trust + patch.trustDelta) }
        this.#store.update(id, { ...change, ...trust }, now)
        return this.#fact(id)
      })
    })
  }

  /** False if there is no such fact. What is removed is not extracted from a conversation again. */
  remove(id: number): Promise<boolean> {
    return this.#change((now) => {
      requireId(id)
      return this.#store.write(now, () => this.#store.remove(id, now))
    })
  }

  feedback(id: number, rating: Rating): Promise<Fact> {
    return this.#change((now) => {
      requireId(id)
      if (!RATINGS.includes(rating))
        throw new TypeError(`rating must be helpful or unhelpful, got ${JSON.stringify(rating)}`)
      return this.#store.write(now, () => {
        const trust = clamp(this.#fact(id).trust + TRUST_STEP[rating])
        this.#connection.run(
          'UPDATE facts SET trust_score = ?, helpful_count = coalesce(helpful_count, 0) + ?, updated_at = ? WHERE fact_id = ?',
          ...[trust, rating === 'helpful' ? 1 : 0, now, id],
        )
        return this.#fact(id)
      })
    })
  }

  /** The most trusted first. */
  list(options: { readonly limit?: number; readonly category?: string } = {}): Promise<Fact[]> {
    return this.#ask(() => {
      const limit = readLimit(options.limit, DEFAULT_LIMIT)
      const { category } = options
      const where = category === undefined ? '' : 'WHERE f.category = ?'
      const rows = this.#connection.all(
        `SELECT ${FACT_COLUMNS} FROM facts AS f ${where} ORDER BY f.trust_score DESC, f.fact_id DESC LIMIT ?`,
        ...(category === undefined ? [] : [category]),
        limit,
      )
      return rows.map(asFactRow)
    })
  }

  /** Facts that answer a question in words, best first. */
  search(
    query: string,
    options: { readonly limit?: number; readonly category?: string; readonly minTrust?: number } = {},
  ): Promise<Fact[]> {
    return this.#ask((weighing) => {
      const minTrust = options.minTrust ?? this.#settings.minTrust
      requireRange('minTrust', minTrust, 0, 1)
      const request = { limit: readLimit(options.limit, DEFAULT_LIMIT), category: options.category, minTrust }
      return this.#search.run(readQuestion('query', query), request, weighing)
    })
  }

  /** Facts about one entity. */
  probe(entity: string, options: { readonly limit?: number } = {}): Promise<Fact[]> {
    return this.#ask((weighing) =>
      this.#about.probe(readQuestion('entity', entity), readLimit(options.limit, DEFAULT_LIMIT), weighing),
    )
  }

  /** Facts about one entity, and facts that mention it. */
  related(entity: string, options: { readonly limit?: number } = {}): Promise<Fact[]> {
    return this.#ask((weighing) =>
      this.#about.related(readQuestion('entity', entity), readLimit(options.limit, DEFAULT_LIMIT), weighing),
    )
  }

  /** Facts about all of the entities at once. */
  reason(entities: readonly string[], options: { readonly limit?: number } = {}): Promise<Fact[]> {
    return this.#ask((weighing) => {
      if (!Array.isArray(entities) || entities.length === 0 || entities.length > MOST_ENTITIES_ASKED) {
        throw new TypeError(`entities must be an array of 1 to ${MOST_ENTITIES_ASKED} names`)
      }
      const names = entities.map((name) => readQuestion('entities', name))
      return this.#about.reason(names, readLimit(options.limit, DEFAULT_LIMIT), weighing)
    })
  }

  /** Pairs among the newest facts that can hardly both be true. */
  contradict(options: { readonly limit?: number } = {}): Promise<Contradiction[]> {
    return this.#run(() => {
      const limit = readLimit(options.limit, DEFAULT_LIMIT)
      this.#adoptIfFree()
      return this.#connection.read(() => {
        const rows = this.#connection.all(
          `SELECT ${FACT_COLUMNS} FROM facts AS f ORDER BY f.updated_at DESC, f.fact_id DESC LIMIT ?`,
          COMPARED_FACTS,
        )
        const facts = new Map(asFacts(this.#connection, rows.map(asFactRow)).map((fact) => [fact.id, fact]))
        return findConflicts([...facts.values()].map(asStatement))
          .slice(0, limit)
          .flatMap(({ a, b, score, entities }) => {
            const [left, right] = [facts.get(a.id), facts.get(b.id)]
            return left === undefined || right === undefined ? [] : [{ a: left, b: right, score, entities }]
          })
      })
    })
  }

  /** What to put before a turn: a heading and one line a fact, or nothing. */
  async recall(query: string, options: { readonly limit?: number } = {}): Promise<string> {
    const facts = await this.search(query, { limit: readLimit(options.limit, RECALL_LIMIT) })
    if (facts.length === 0) return ''
    // A fact stays on its line: one with line breaks could else pose as instructions of its own.
    const lines = facts.map(({ trust, content }) => `- [${trust.toFixed(1)}] ${content.replace(/\s+/gu, ' ')}`)
    return ['## Holographic Memory', ...lines].join('\n')
  }

  /** Schemas of `fact_store` and `fact_feedback`, for the `tools` of an OpenAI-compatible request. */
  tools(): ToolSchema[] {
    return toolSchemas()
  }

  /** Runs a tool call (`args` as an object or as the JSON text the API gives) and answers with JSON text for the model. */
  handleToolCall(name: string, args: unknown): Promise<string> {
    return handleToolCall(this, name, args)
  }

  /** The agent that commits this session's segments into this memory, each exactly once. */
  agent(sessionId: string): MemoryAgent {
    requireText('sessionId', sessionId)
    return createAgent(sessionId, {
      extract: this.#settings.extract,
      recorded: (key) => this.#guard(() => this.#recorded(key)),
      learn: (commit, facts) => this.#guard(() => this.#learn(commit, facts)),
    })
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#connection.close()
      resolve()
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #learn(commit: MemoryCommit, facts: readonly LearnedFact[]): number {
    const now = this.#now()
    return this.#store.write(now, () => {
      // Inside the transaction: another process may have stored this segment while we extracted it.
      const before = this.#recorded(commit.idempotencyKey)
      if (before !== undefined) return before
      let stored = 0
      for (const fact of facts) {
        if (this.#store.isBuried(fact.content)) continue
        this.#store.add({ ...fact, trust: this.#settings.defaultTrust }, now)
        stored++
      }
      this.#connection.run(
        `INSERT INTO tidemark_commits (idempotency_key, session_id, from_generation, to_generation, fact_count, committed_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
        ...[commit.idempotencyKey, commit.sessionId, commit.from, commit.to, stored, now],
      )
      return stored
    })
  }

  #recorded(idempotencyKey: string): number | undefined {
    const row = this.#connection.get(
      'SELECT fact_count FROM tidemark_commits WHERE idempotency_key = ?',
      idempotencyKey,
    )
    return row === undefined ? undefined : Number(row['fact_count'])
  }

  #fact(id: number): Fact {
    const [fact] = asFacts(this.#connection, readFacts(this.#connection, [id]))
    if (fact === undefined) throw notFound(id)
    return fact
  }

  /** Takes up what the Python plugin wrote before, in pieces, so that other work goes on. */
  async #adoptAll(): Promise<void> {
    while (this.#guard(() => this.#store.hasStale())) {
      this.#guard(() => this.#connection.write(() => this.#store.catchUp(ADOPTED_AT_ONCE, this.#now())))
      await setImmediate()
    }
  }

  /** Before a read. A read never waits for a writer: if one is at work, it answers from what is known. */
  #adoptIfFree(): void {
    if (!this.#store.hasStale()) return
    this.#connection.exec('PRAGMA busy_timeout = 0')
    try {
      this.#guard(() => this.#connection.write(() => this.#store.catchUp(ADOPTED_AT_ONCE, this.#now())))
    } catch (error) {
      if (!(error instanceof TidemarkError && error.code === 'LOCKED')) throw error
      this.#settings.logger.debug(
        { path: this.#connection.path },
        'facts of another program are taken up later: the database is busy',
      )
    } finally {
      this.#connection.exec(`PRAGMA busy_timeout = ${this.#settings.busyTimeoutMs}`)
    }
  }

  #ask(find: (weighing: Weighing) => (FactRow & { score?: number })[]): Promise<Fact[]> {
    return this.#run(() => {
      this.#adoptIfFree()
      const weighing = { nowMs: this.#settings.clock.now(), halfLifeDays: this.#settings.halfLifeDays }
      return this.#connection.read(() => asFacts(this.#connection, find(weighing)))
    })
  }

  #change<T>(work: (now: string) => T): Promise<T> {
    return this.#run(() => work(this.#now()))
  }

  /** Everything below is synchronous; outside it looks as if it were not, so that it may become so. */
  #run<T>(work: () => T): Promise<T> {
    return new Promise((resolve) => {
      resolve(this.#guard(work))
    })
  }

  #guard<T>(work: () => T): T {
    return this.#connection.guard(work)
  }

  #now(): string {
    return timestamp(this.#settings.clock.now())
  }
}

function readLimit(limit: number | undefined, fallback: number): number {
  if (limit !== undefined) requireRange('limit', limit, 1, LARGEST_LIMIT, true)
  return limit ?? fallback
}

function requireId(id: unknown): void {
  requireRange('id', id, 1, Number.MAX_SAFE_INTEGER, true)
}

function requireText(name: string, value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, got ${typeof value}`)
  return value
}

function readQuestion(name: string, value: unknown): string {
  return requireText(name, value).slice(0, LONGEST_QUESTION)
}

function clamp(trust: number): number {
  return Math.min(1, Math.max(0, trust))
}
