import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { TidemarkError } from '../../base/errors.js'
import { loadSqlite } from '../../base/sqlite.js'
import type { VectorFormat } from './codec.js'
import { Connection } from './connection.js'
import { inspect, type Inspection } from './inspect.js'
import type { Settings } from './options.js'
import { FORMAT, OWN_SCHEMA, SHARED_SCHEMA } from './schema.js'
import { asTidemarkError, needsWriting } from './sqlite-errors.js'

export interface OpenDatabase {
  readonly connection: Connection
  readonly dimensions: number
  readonly format: VectorFormat
}

const DEFAULT_DIMENSIONS = 1024
const EMPTY: Inspection = { kind: 'empty' }

/** Looks first, without writing; opens and prepares the file only if it is ours to use. */
export async function openDatabase(settings: Settings): Promise<OpenDatabase> {
  const { DatabaseSync } = await loadSqlite()
  const path = settings.path === ':memory:' ? settings.path : resolve(settings.path)
  try {
    const timeout = settings.busyTimeoutMs
    const hasContent = path !== ':memory:' && createFile(path) === 'existed' && statSync(path).size > 0
    const look = (readOnly: boolean): Inspection => {
      const db = new DatabaseSync(path, { readOnly, timeout })
      try {
        db.exec(`PRAGMA busy_timeout = ${timeout}`)
        return inspect(db, path)
      } finally {
        db.close()
      }
    }
    const found = hasContent ? lookWithoutWriting(look) : EMPTY
    checkDimensions(found, settings.dimensions, path)
    const connection = new Connection(new DatabaseSync(path, { timeout }), path)
    try {
      setPragmas(connection, settings)
      return prepare(connection, settings)
    } catch (error) {
      connection.close()
      throw error
    }
  } catch (error) {
    throw asTidemarkError(error, path)
  }
}

/** SQLite would make the file readable for everybody. Nothing else here opens it but SQLite: closing would drop its locks. */
function createFile(path: string): 'created' | 'existed' {
  if (existsSync(path)) return 'existed'
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, 'wx', 0o600))
    return 'created'
  } catch (error) {
    // Another process was first; a file in place of a folder is EEXIST, too, and then there still is no file.
    if (existsSync(path)) return 'existed'
    throw new TidemarkError(
      'WRITE_FAILED',
      `The holographic database ${path} could not be created; check the folder and its rights`,
      {
        cause: error,
        details: { path },
      },
    )
  }
}

function lookWithoutWriting(look: (readOnly: boolean) => Inspection): Inspection {
  try {
    return look(true)
  } catch (error) {
    if (!needsWriting(error)) throw error
    return look(false)
  }
}

function setPragmas(connection: Connection, { logger, busyTimeoutMs }: Settings): void {
  connection.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`)
  const mode = connection.get('PRAGMA journal_mode = WAL')?.['journal_mode']
  if (mode !== 'wal' && mode !== 'memory') {
    logger.warn(
      { path: connection.path, mode },
      'no write-ahead log on this file system: readers and writers wait for each other',
    )
  }
  // WAL with NORMAL loses acknowledged commits in a power cut, and an acknowledged segment is never offered again.
  connection.exec('PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON')
  const level = connection.get('PRAGMA synchronous')?.['synchronous']
  if (level !== 2)
    throw new TidemarkError('FILE_SYSTEM_REFUSED', `SQLite did not accept synchronous=FULL, found ${String(level)}`)
}

function checkDimensions(found: Inspection, wanted: number | undefined, path: string): void {
  if (found.kind === 'empty' || wanted === undefined || found.dimensions === undefined || found.dimensions === wanted)
    return
  throw new TidemarkError(
    'DIMENSION_MISMATCH',
    `${path} holds vectors of ${found.dimensions} dimensions, asked for were ${wanted}. Open it with dimensions: ${found.dimensions} or leave the option out`,
    { details: { path, stored: found.dimensions, wanted } },
  )
}

/** Another process may have prepared the file since we looked, so inside the lock it is looked at again. */
function prepare(connection: Connection, settings: Settings): OpenDatabase {
  return connection.write(() => {
    const hasMeta = connection.get("SELECT 1 AS yes FROM sqlite_master WHERE name = 'tidemark_meta'") !== undefined
    const now = hasMeta ? readMeta(connection) : undefined
    if (now !== undefined) {
      checkDimensions(
        { kind: 'facts', ours: true, hasVectorColumn: true, ...now },
        settings.dimensions,
        connection.path,
      )
      return { connection, ...now }
    }
    const found = inspect(connection.database, connection.path)
    connection.exec(SHARED_SCHEMA)
    if (found.kind === 'facts' && !found.hasVectorColumn)
      connection.exec('ALTER TABLE facts ADD COLUMN hrr_vector BLOB')
    connection.exec(OWN_SCHEMA)
    const dimensions =
      (found.kind === 'facts' ? found.dimensions : undefined) ?? settings.dimensions ?? DEFAULT_DIMENSIONS
    // The classic plugin reads float64 only and fails on anything else: a database keeps the format it came with.
    const format = (found.kind === 'facts' ? found.format : undefined) ?? 'float32'
    const meta = { format: FORMAT, dimensions, vector_format: format }
    for (const [key, value] of Object.entries(meta)) {
      connection.run('INSERT INTO tidemark_meta (key, value) VALUES (?, ?)', key, String(value))
    }
    connection.exec(`
      INSERT OR IGNORE INTO tidemark_stale SELECT 'fact', fact_id FROM facts;
      INSERT OR IGNORE INTO tidemark_stale SELECT 'entity', entity_id FROM entities;
    `)
    return { connection, dimensions, format }
  })
}

function readMeta(connection: Connection): { dimensions: number; format: VectorFormat } | undefined {
  const value = (key: string): string | undefined =>
    connection.get('SELECT value FROM tidemark_meta WHERE key = ?', key)?.['value']?.toString()
  const dimensions = value('dimensions')
  if (dimensions === undefined) return undefined
  return { dimensions: Number(dimensions), format: value('vector_format') === 'float64' ? 'float64' : 'float32' }
}
