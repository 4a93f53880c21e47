import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase } from '../../base/sqlite.js'
import { describeBlob, type VectorFormat } from './codec.js'
import { FORMAT, REQUIRED_COLUMNS } from './schema.js'

/** What a file turned out to be, found by reading only. */
export type Inspection =
  | { readonly kind: 'empty' }
  | {
      readonly kind: 'facts'
      /** False for a database that only the Python plugin has used so far. */
      readonly ours: boolean
      readonly hasVectorColumn: boolean
      readonly dimensions: number | undefined
      readonly format: VectorFormat | undefined
    }

/** Refuses what is damaged, foreign or newer before anything is written to it. */
export function inspect(db: SqlDatabase, path: string): Inspection {
  const tables = db
    .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")
    .all()
    .map((row) => String(row['name']))
  checkPages(db, path)
  if (tables.length === 0) return { kind: 'empty' }
  const columns = (table: string): string[] =>
    db
      .prepare('SELECT name FROM pragma_table_info(?)')
      .all(table)
      .map((row) => String(row['name']))
  for (const [table, required] of Object.entries(REQUIRED_COLUMNS)) {
    const present = new Set(columns(table))
    const missing = required.filter((column) => !present.has(column))
    if (missing.length === 0) continue
    throw new TidemarkError(
      'FILE_FOREIGN',
      `Expected a holographic fact store, found a database without ${missing.map((name) => `${table}.${name}`).join(', ')} ` +
        `in ${path}. It was left as it is; give another path`,
      { details: { path, missing: missing.map((name) => `${table}.${name}`) } },
    )
  }
  const meta = tables.includes('tidemark_meta')
    ? new Map(
        db
          .prepare('SELECT key, value FROM tidemark_meta')
          .all()
          .map((row) => [String(row['key']), String(row['value'])]),
      )
    : undefined
  checkFormat(Number(meta?.get('format') ?? FORMAT), path)
  const hasVectorColumn = columns('facts').includes('hrr_vector')
  const stored = meta?.get('dimensions')
  const guessed = hasVectorColumn ? describeFirstVector(db) : undefined
  return {
    kind: 'facts',
    ours: meta?.has('format') === true,
    hasVectorColumn,
    dimensions: stored === undefined ? guessed?.dimensions : Number(stored),
    format: meta?.get('vector_format') === undefined ? guessed?.format : asFormat(meta.get('vector_format')),
  }
}

function checkPages(db: SqlDatabase, path: string): void {
  const verdict = String(Object.values(db.prepare('PRAGMA quick_check(1)').get() ?? {})[0])
  if (verdict === 'ok') return
  throw new TidemarkError(
    'CORRUPT',
    `The holographic database ${path} is damaged: ${verdict}. It was left as it is; restore a copy, or recover it with "sqlite3 … .recover"`,
    { details: { path } },
  )
}

function checkFormat(format: number, path: string): void {
  if (format <= FORMAT) return
  throw new TidemarkError(
    'FILE_NEWER',
    `${path} was written by a newer tidemark: its format is ${format}, this version knows up to ${FORMAT}. Update tidemark`,
    { details: { path, format, known: FORMAT } },
  )
}

function describeFirstVector(db: SqlDatabase): { dimensions: number; format: VectorFormat } | undefined {
  const blob = db.prepare('SELECT hrr_vector FROM facts WHERE hrr_vector IS NOT NULL LIMIT 1').get()?.['hrr_vector']
  return blob instanceof Uint8Array ? describeBlob(blob) : undefined
}

function asFormat(value: string | undefined): VectorFormat {
  return value === 'float64' ? 'float64' : 'float32'
}
