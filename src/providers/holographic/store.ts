import { TidemarkError } from '../../base/errors.js'
import { Banks, type BankChange } from './banks.js'
import { decodeVector, encodeVector, type VectorFormat } from './codec.js'
import type { Connection } from './connection.js'
import { deletionKey } from './content.js'
import { extractEntities } from './entities.js'
import { EntityNames } from './entity-names.js'
import type { VectorSpace } from './vectors.js'
import { type Vector } from './vectors.js'
import { categoryTerm, indexTerms } from './words.js'

export interface NewFact {
  readonly content: string
  readonly category: string
  /** Comma-separated, as stored. */
  readonly tags: string
  readonly trust: number
}

export interface StoredPatch {
  readonly content?: string
  readonly category?: string
  readonly tags?: string
  readonly trust?: number
}

/**
 * The writes. Each method expects to run inside a transaction (`Connection.write`), and `finish` ends each transaction:
 * it brings the banks up to date and clears what our own triggers noted about our own writes.
 */
export class FactStore {
  readonly names: EntityNames
  readonly #banks: Banks
  readonly #connection: Connection
  readonly #space: VectorSpace
  readonly #format: VectorFormat
  #changes: BankChange[] = []

  constructor(connection: Connection, space: VectorSpace, format: VectorFormat) {
    this.#connection = connection
    this.#space = space
    this.#format = format
    this.names = new EntityNames(connection)
    this.#banks = new Banks(connection, space, format)
  }

  /** A transaction around writes of facts. What the plugin wrote before is taken up first, so `finish` clears only ours. */
  write<T>(now: string, work: () => T): T {
    this.#changes = []
    return this.#connection.write(() => {
      this.catchUp(Number.MAX_SAFE_INTEGER, now)
      const result = work()
      this.#banks.apply(this.#changes, now)
      this.#connection.run('DELETE FROM tidemark_stale')
      return result
    })
  }

  /** The known content wins, with its category and tags. */
  add(fact: NewFact, now: string): { id: number; added: boolean } {
    const known = this.idOf(fact.content)
    if (known !== undefined) return { id: known, added: false }
    const { names, aliases } = extractEntities(fact.content)
    const vector = this.#space.fact(fact.content, names)
    // One INSERT with its vector: the plugin's trigger indexes the text again on every UPDATE.
    const { id } = this.#connection.run(
      `INSERT INTO facts (content, category, tags, trust_score, created_at, updated_at, hrr_vector)
       VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ...[fact.content, fact.category, fact.tags, fact.trust, now, now, encodeVector(vector, this.#format)],
    )
    this.#link(id, names, aliases, now)
    this.#index(id, fact)
    this.#changes.push({ category: fact.category, vector: this.#asStored(vector), sign: 1 })
    return { id, added: true }
  }

  update(id: number, patch: StoredPatch, now: string): void {
    const row = this.#connection.get(
      `SELECT content, coalesce(category, 'general') AS category, coalesce(tags, '') AS tags, trust_score, hrr_vector
       FROM facts WHERE fact_id = ?`,
      id,
    )
    if (row === undefined) throw notFound(id)
    const before = { content: String(row['content']), category: String(row['category']), tags: String(row['tags']) }
    const after = { ...before, trust: Number(row['trust_score']), ...patch }
    const rewritten = after.content !== before.content
    const holder = rewritten ? this.idOf(after.content) : undefined
    if (holder !== undefined) {
      throw new TidemarkError(
        'FACT_EXISTS',
        `Fact ${id} cannot get this content: fact ${holder} has it already. Remove one of the two`,
        {
          details: { id, holder },
        },
      )
    }
    const old = this.#decode(row['hrr_vector'])
    const found = extractEntities(after.content)
    const vector = rewritten ? this.#space.fact(after.content, found.names) : old
    // Without new content the vector stays as it is, also one that we cannot read.
    this.#connection.run(
      `UPDATE facts SET content = ?, category = ?, tags = ?, trust_score = ?, updated_at = ?, hrr_vector = coalesce(?, hrr_vector)
       WHERE fact_id = ?`,
      ...[after.content, after.category, after.tags, after.trust, now],
      rewritten && vector !== undefined ? encodeVector(vector, this.#format) : null,
      id,
    )
    if (rewritten) {
      this.#connection.run('DELETE FROM fact_entities WHERE fact_id = ?', id)
      this.#link(id, found.names, found.aliases, now)
      // What was corrected must not be learned again from an old conversation.
      this.bury(before.content, now)
      this.exhume(after.content)
    }
    if (rewritten || after.tags !== before.tags || after.category !== before.category) this.#index(id, after)
    if (rewritten || after.category !== before.category) {
      if (old !== undefined) this.#changes.push({ category: before.category, vector: old, sign: -1 })
      if (vector !== undefined)
        this.#changes.push({ category: after.category, vector: this.#asStored(vector), sign: 1 })
    }
  }

  remove(id: number, now: string): boolean {
    const row = this.#connection.get(
      `SELECT content, coalesce(category, 'general') AS category, hrr_vector FROM facts WHERE fact_id = ?`,
      id,
    )
    if (row === undefined) return false
    this.#connection.run('DELETE FROM fact_entities WHERE fact_id = ?', id)
    this.#connection.run('DELETE FROM facts WHERE fact_id = ?', id)
    this.#connection.run('DELETE FROM tidemark_index WHERE rowid = ?', id)
    this.bury(String(row['content']), now)
    const vector = this.#decode(row['hrr_vector'])
    if (vector !== undefined) this.#changes.push({ category: String(row['category']), vector, sign: -1 })
    return true
  }

  idOf(content: string): number | undefined {
    const id = this.#connection.get('SELECT fact_id AS id FROM facts WHERE content = ?', content)?.['id']
    return typeof id === 'number' ? id : undefined
  }

  isBuried(content: string): boolean {
    return (
      this.#connection.get('SELECT 1 AS yes FROM tidemark_deleted WHERE key = ?', deletionKey(content)) !== undefined
    )
  }

  bury(content: string, now: string): void {
    this.#connection.run(
      'INSERT OR IGNORE INTO tidemark_deleted (key, deleted_at) VALUES (?, ?)',
      deletionKey(content),
      now,
    )
  }

  /** Somebody stated it on purpose: it may be learned again. */
  exhume(content: string): void {
    this.#connection.run('DELETE FROM tidemark_deleted WHERE key = ?', deletionKey(content))
  }

  hasStale(): boolean {
    return this.#connection.get('SELECT 1 AS yes FROM tidemark_stale LIMIT 1') !== undefined
  }

  /**
   * Takes up to `most` notes of what the Python plugin wrote since, and gives back how many it took. Links that the
   * plugin made stay; ours are added. Its vectors stay too, and facts without one are ranked by their words.
   */
  catchUp(most: number, now: string): number {
    // Entities come before facts, and deletions before facts: a fact that was deleted and added again is alive.
    const notes = this.#connection.all(
      `SELECT kind, key FROM tidemark_stale
       ORDER BY CASE kind WHEN 'entity' THEN 0 WHEN 'deleted' THEN 1 WHEN 'bank' THEN 2 ELSE 3 END LIMIT ?`,
      most,
    )
    for (const note of notes) {
      const key = String(note['key'])
      if (note['kind'] === 'entity') this.names.register(Number(key))
      else if (note['kind'] === 'deleted') this.bury(key, now)
      else if (note['kind'] === 'bank') this.#banks.forget(key)
      else this.#adopt(Number(key), now)
      this.#connection.run('DELETE FROM tidemark_stale WHERE kind = ? AND key = ?', String(note['kind']), key)
    }
    return notes.length
  }

  #adopt(id: number, now: string): void {
    const row = this.#connection.get(
      `SELECT content, coalesce(category, 'general') AS category, coalesce(tags, '') AS tags FROM facts WHERE fact_id = ?`,
      id,
    )
    if (row === undefined) {
      this.#connection.run('DELETE FROM tidemark_index WHERE rowid = ?', id)
      return
    }
    const content = String(row['content'])
    const { names, aliases } = extractEntities(content)
    this.#link(id, names, aliases, now)
    this.#index(id, { content, category: String(row['category']), tags: String(row['tags']) })
    this.exhume(content)
  }

  #link(id: number, names: readonly string[], aliases: readonly { name: string; alias: string }[], now: string): void {
    for (const name of names) {
      const entityId = this.names.resolve(name, now)
      this.#connection.run('INSERT OR IGNORE INTO fact_entities (fact_id, entity_id) VALUES (?, ?)', id, entityId)
      for (const { alias } of aliases.filter((pair) => pair.name === name)) this.names.addAlias(entityId, alias)
    }
  }

  #index(id: number, fact: { content: string; category: string; tags: string }): void {
    this.#connection.run('DELETE FROM tidemark_index WHERE rowid = ?', id)
    const terms = [...indexTerms(`${fact.content}\n${fact.tags}`), categoryTerm(fact.category)].join(' ')
    this.#connection.run('INSERT INTO tidemark_index (rowid, terms) VALUES (?, ?)', id, terms)
  }

  #decode(blob: unknown): Vector | undefined {
    return blob instanceof Uint8Array ? decodeVector(blob, this.#space.dimensions) : undefined
  }

  /** The vector as it will be read back: a bank that adds it must be able to take exactly the same out again. */
  #asStored(vector: Vector): Vector {
    return this.#decode(encodeVector(vector, this.#format)) ?? vector
  }
}

export function notFound(id: number): TidemarkError {
  return new TidemarkError('NOT_FOUND', `There is no fact ${id}; list() and search() give the ids there are`, {
    details: { id },
  })
}
