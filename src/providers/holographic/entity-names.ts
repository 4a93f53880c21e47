import type { Connection } from './connection.js'
import { entityKey } from './entities.js'

/**
 * Which entity a name means. `tidemark_names` maps a folded key to entities: their own names and their aliases. Two
 * entities may share a key, because the Python plugin keeps "node-js" and "Node JS" apart; they are read as one.
 */
export class EntityNames {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The entity to link a fact to: the oldest that bears the name, else a new one. */
  resolve(name: string, now: string): number {
    const key = entityKey(name)
    const known = this.#connection.get('SELECT min(entity_id) AS id FROM tidemark_names WHERE key = ?', key)?.['id']
    if (typeof known === 'number') return known
    const { id } = this.#connection.run('INSERT INTO entities (name, created_at) VALUES (?, ?)', name, now)
    this.#learn(key, id)
    return id
  }

  /** From now on the alias means the entity too. The column `aliases` is for the plugin, which reads it and never writes it. */
  addAlias(entityId: number, alias: string): void {
    const key = entityKey(alias)
    if (key === '' || !this.#learn(key, entityId)) return
    const stored = String(
      this.#connection.get('SELECT aliases FROM entities WHERE entity_id = ?', entityId)?.['aliases'] ?? '',
    )
    const aliases = [...splitList(stored), alias.replaceAll(',', ' ')].join(',')
    this.#connection.run('UPDATE entities SET aliases = ? WHERE entity_id = ?', aliases, entityId)
  }

  /** Takes up an entity that the plugin wrote or changed. */
  register(entityId: number): void {
    const row = this.#connection.get('SELECT name, aliases FROM entities WHERE entity_id = ?', entityId)
    if (row === undefined) return
    for (const name of [String(row['name']), ...splitList(String(row['aliases'] ?? ''))]) {
      const key = entityKey(name)
      if (key !== '') this.#learn(key, entityId)
    }
  }

  /** Every entity that a name may mean, over one step of aliases: whoever has a key in common with one that bears it. */
  meaning(name: string): number[] {
    return this.meaningOfKeys([entityKey(name)]).map(({ entityId }) => entityId)
  }

  meaningOfKeys(keys: readonly string[]): { key: string; entityId: number }[] {
    return this.#connection
      .all(
        `SELECT DISTINCT asked.key AS key, same.entity_id AS id FROM tidemark_names AS asked
         JOIN tidemark_names AS own ON own.entity_id = asked.entity_id
         JOIN tidemark_names AS same ON same.key = own.key
         WHERE asked.key IN (SELECT value FROM json_each(?))`,
        JSON.stringify(keys),
      )
      .map((row) => ({ key: String(row['key']), entityId: Number(row['id']) }))
  }

  #learn(key: string, entityId: number): boolean {
    return (
      this.#connection.run('INSERT OR IGNORE INTO tidemark_names (key, entity_id) VALUES (?, ?)', key, entityId)
        .changes > 0
    )
  }
}

export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
