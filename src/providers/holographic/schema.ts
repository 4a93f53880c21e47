/**
 * The first half is the schema of the Python plugin, under the very names it uses: each side creates what is missing and
 * finds what the other made. The second half, `tidemark_…`, is ours alone; the plugin never looks at it.
 */
export const SHARED_SCHEMA = `
  CREATE TABLE IF NOT EXISTS facts (
    fact_id INTEGER PRIMARY KEY AUTOINCREMENT,
    content TEXT NOT NULL UNIQUE,
    category TEXT DEFAULT 'general',
    tags TEXT DEFAULT '',
    trust_score REAL DEFAULT 0.5,
    retrieval_count INTEGER DEFAULT 0,
    helpful_count INTEGER DEFAULT 0,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    hrr_vector BLOB
  );
  CREATE TABLE IF NOT EXISTS entities (
    entity_id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    entity_type TEXT DEFAULT 'unknown',
    aliases TEXT DEFAULT '',
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
  );
  CREATE TABLE IF NOT EXISTS fact_entities (
    fact_id INTEGER REFERENCES facts(fact_id),
    entity_id INTEGER REFERENCES entities(entity_id),
    PRIMARY KEY (fact_id, entity_id)
  );
  CREATE TABLE IF NOT EXISTS memory_banks (
    bank_id INTEGER PRIMARY KEY AUTOINCREMENT,
    bank_name TEXT NOT NULL UNIQUE,
    vector BLOB NOT NULL,
    dim INTEGER NOT NULL,
    fact_count INTEGER DEFAULT 0,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
  );
  CREATE INDEX IF NOT EXISTS idx_facts_trust ON facts(trust_score DESC);
  CREATE INDEX IF NOT EXISTS idx_facts_category ON facts(category);
  CREATE INDEX IF NOT EXISTS idx_entities_name ON entities(name);
  CREATE VIRTUAL TABLE IF NOT EXISTS facts_fts USING fts5(content, tags, content=facts, content_rowid=fact_id);
  CREATE TRIGGER IF NOT EXISTS facts_ai AFTER INSERT ON facts BEGIN
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags);
  END;
  CREATE TRIGGER IF NOT EXISTS facts_ad AFTER DELETE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
  END;
  CREATE TRIGGER IF NOT EXISTS facts_au AFTER UPDATE ON facts BEGIN
    INSERT INTO facts_fts(facts_fts, rowid, content, tags) VALUES ('delete', old.fact_id, old.content, old.tags);
    INSERT INTO facts_fts(rowid, content, tags) VALUES (new.fact_id, new.content, new.tags);
  END;
`

/** Raised when the tables below change their meaning. A database with a higher one is refused. */
export const FORMAT = 1

/**
 * What the plugin writes is noted by triggers in `tidemark_stale` and taken up later (catch-up.ts). The triggers write
 * plain rows only, because they run inside the plugin's SQLite, which may be years older than ours.
 *
 * `tidemark_index` holds words that are already folded and cut (words.ts), so its tokenizer must leave them alone: the
 * `ascii` one takes every non-ASCII character for a letter.
 */
export const OWN_SCHEMA = `
  CREATE TABLE IF NOT EXISTS tidemark_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS tidemark_commits (
    idempotency_key TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    from_generation INTEGER NOT NULL,
    to_generation INTEGER NOT NULL,
    fact_count INTEGER NOT NULL,
    committed_at TEXT NOT NULL
  ) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS tidemark_deleted (key TEXT PRIMARY KEY, deleted_at TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS tidemark_names (
    key TEXT NOT NULL,
    entity_id INTEGER NOT NULL,
    PRIMARY KEY (key, entity_id)
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS tidemark_names_by_entity ON tidemark_names(entity_id);
  CREATE INDEX IF NOT EXISTS tidemark_facts_by_entity ON fact_entities(entity_id, fact_id);
  CREATE TABLE IF NOT EXISTS tidemark_banks (
    category TEXT PRIMARY KEY,
    re BLOB NOT NULL,
    im BLOB NOT NULL,
    fact_count INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE VIRTUAL TABLE IF NOT EXISTS tidemark_index USING fts5(terms, tokenize='ascii', detail=none, columnsize=0);
  CREATE TABLE IF NOT EXISTS tidemark_stale (kind TEXT, key TEXT, PRIMARY KEY (kind, key)) WITHOUT ROWID;
  CREATE TRIGGER IF NOT EXISTS tidemark_fact_added AFTER INSERT ON facts BEGIN
    INSERT OR IGNORE INTO tidemark_stale VALUES ('fact', new.fact_id), ('bank', coalesce(new.category, ''));
  END;
  CREATE TRIGGER IF NOT EXISTS tidemark_fact_changed AFTER UPDATE OF content, tags, category ON facts BEGIN
    INSERT OR IGNORE INTO tidemark_stale VALUES ('fact', new.fact_id);
  END;
  CREATE TRIGGER IF NOT EXISTS tidemark_vector_changed AFTER UPDATE OF category, hrr_vector ON facts BEGIN
    INSERT OR IGNORE INTO tidemark_stale VALUES ('bank', coalesce(old.category, '')), ('bank', coalesce(new.category, ''));
  END;
  CREATE TRIGGER IF NOT EXISTS tidemark_fact_removed AFTER DELETE ON facts BEGIN
    INSERT OR IGNORE INTO tidemark_stale
      VALUES ('fact', old.fact_id), ('deleted', old.content), ('bank', coalesce(old.category, ''));
  END;
  CREATE TRIGGER IF NOT EXISTS tidemark_entity_added AFTER INSERT ON entities BEGIN
    INSERT OR IGNORE INTO tidemark_stale VALUES ('entity', new.entity_id);
  END;
  CREATE TRIGGER IF NOT EXISTS tidemark_entity_changed AFTER UPDATE ON entities BEGIN
    INSERT OR IGNORE INTO tidemark_stale VALUES ('entity', new.entity_id);
  END;
`

/** A database that has these is a fact store; one that has other tables instead belongs to somebody else. */
export const REQUIRED_COLUMNS: Readonly<Record<string, readonly string[]>> = {
  facts: ['fact_id', 'content', 'category', 'tags', 'trust_score', 'helpful_count', 'created_at', 'updated_at'],
  entities: ['entity_id', 'name', 'aliases'],
  fact_entities: ['fact_id', 'entity_id'],
}
