import type { SqlDatabase } from '../../src/base/sqlite.js'
import type { VectorSpace } from '../../src/providers/holographic/vectors.js'
import { bind, bundle, similarity, unbind, type Vector } from '../../src/providers/holographic/vectors.js'

/**
 * The Python plugin as its formulas and its schema describe it, for tests and benchmarks only: what it would answer, and
 * what a database looks like that it wrote.
 */
export interface ReferenceFact {
  readonly content: string
  readonly entities: readonly string[]
  readonly vector: Vector
}

export class ReferenceRanking {
  readonly #space: VectorSpace

  constructor(space: VectorSpace) {
    this.#space = space
  }

  /** Unbinds the entity from the fact and hopes to find the content. */
  probe(fact: ReferenceFact, entity: string): number {
    return similarity(unbind(fact.vector, this.#space.entityKey(entity)), this.#space.contentKey(fact.content))
  }

  related(fact: ReferenceFact, entity: string): number {
    const rest = unbind(fact.vector, this.#space.atom(entity.toLowerCase()))
    return Math.max(similarity(rest, this.#space.entityRole), similarity(rest, this.#space.contentRole))
  }

  reason(fact: ReferenceFact, entities: readonly string[]): number {
    const values = entities.map((entity) =>
      similarity(unbind(fact.vector, this.#space.entityKey(entity)), this.#space.contentRole),
    )
    return Math.min(...values)
  }

  /** Compares the bare text of the query with a vector that holds the text bound to a role. */
  search(fact: ReferenceFact, query: string): number {
    return similarity(this.#space.text(query), fact.vector)
  }

  /** Undefined where the reference would not report the pair. */
  contradict(a: ReferenceFact, b: ReferenceFact, threshold = 0.3): number | undefined {
    const [left, right] = [a, b].map(({ entities }) => new Set(entities.map((name) => name.toLowerCase()))) as [
      Set<string>,
      Set<string>,
    ]
    if (left.size === 0 || right.size === 0) return undefined
    const shared = [...left].filter((name) => right.has(name)).length
    const overlap = shared / (left.size + right.size - shared)
    if (overlap < 0.3) return undefined
    const score = overlap * (1 - (similarity(a.vector, b.vector) + 1) / 2)
    return score >= threshold ? score : undefined
  }
}

/** A fact encoded step by step, without the short cuts of the real encoder. */
export function encodePlainly(space: VectorSpace, content: string, entities: readonly string[]): Vector {
  const parts = [bind(space.text(content), space.atom('__hrr_role_content__'))]
  for (const name of entities) parts.push(bind(space.atom(name.toLowerCase()), space.atom('__hrr_role_entity__')))
  return bundle(parts)
}

const COLUMNS = [
  'fact_id integer primary key autoincrement',
  'content text not null unique',
  "category text default 'general'",
  "tags text default ''",
  'trust_score real default 0.5',
  'retrieval_count integer default 0',
  'helpful_count integer default 0',
  'created_at timestamp default current_timestamp',
  'updated_at timestamp default current_timestamp',
]

/** The tables, indexes and triggers that the plugin makes; an old one knew no vectors. */
export function createReferenceSchema(db: SqlDatabase, { vectors = true } = {}): void {
  const entry = 'new.fact_id, new.content, new.tags'
  const removal = `insert into facts_fts(facts_fts, rowid, content, tags) values ('delete', old.fact_id, old.content, old.tags);`
  const addition = `insert into facts_fts(rowid, content, tags) values (${entry});`
  db.exec(`
    create table facts (${[...COLUMNS, ...(vectors ? ['hrr_vector blob'] : [])].join(', ')});
    create table entities (entity_id integer primary key autoincrement, name text not null, entity_type text default 'unknown',
      aliases text default '', created_at timestamp default current_timestamp);
    create table fact_entities (fact_id integer references facts(fact_id), entity_id integer references entities(entity_id),
      primary key (fact_id, entity_id));
    create table memory_banks (bank_id integer primary key autoincrement, bank_name text not null unique, vector blob not null,
      dim integer not null, fact_count integer default 0, updated_at timestamp default current_timestamp);
    create index idx_facts_trust on facts(trust_score desc);
    create index idx_facts_category on facts(category);
    create index idx_entities_name on entities(name);
    create virtual table facts_fts using fts5(content, tags, content=facts, content_rowid=fact_id);
    create trigger facts_ai after insert on facts begin ${addition} end;
    create trigger facts_ad after delete on facts begin ${removal} end;
    create trigger facts_au after update on facts begin ${removal} ${addition} end;
  `)
}

/** As the plugin stores a fact: row first, then entities, then the vector, each for itself; float64. */
export function addAsReference(
  db: SqlDatabase,
  space: VectorSpace,
  content: string,
  entities: readonly string[] = [],
  category = 'general',
): number {
  const id = Number(
    db.prepare('insert into facts (content, category) values (?, ?)').run(content, category).lastInsertRowid,
  )
  for (const name of entities) {
    const known = db.prepare('select entity_id from entities where name like ?').get(name)?.['entity_id']
    const entity = known ?? db.prepare('insert into entities (name) values (?)').run(name).lastInsertRowid
    db.prepare('insert or ignore into fact_entities values (?, ?)').run(id, entity)
  }
  const vector = encodePlainly(space, content, entities)
  db.prepare('update facts set hrr_vector = ? where fact_id = ?').run(new Uint8Array(vector.buffer), id)
  return id
}

export function removeAsReference(db: SqlDatabase, id: number): void {
  db.prepare('delete from fact_entities where fact_id = ?').run(id)
  db.prepare('delete from facts where fact_id = ?').run(id)
}

export function searchAsReference(db: SqlDatabase, word: string): string[] {
  return db
    .prepare(
      'select f.content from facts f join facts_fts on facts_fts.rowid = f.fact_id where facts_fts match ? order by rank',
    )
    .all(`"${word}"`)
    .map((row) => String(row['content']))
}
