import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase } from '../../base/sqlite.js'

export function readPragma(db: SqlDatabase, name: string): string | number {
  return Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] as string | number
}

export function setPragma(db: SqlDatabase, name: string, value: string, expected: string | number): void {
  db.exec(`PRAGMA ${name} = ${value}`)
  const found = readPragma(db, name)
  if (found === expected) return
  throw new TidemarkError(
    'LEDGER_FAILED',
    `SQLite was asked for ${name} = ${value} and answers ${found}. The ledger cannot promise durability with it.`,
    { details: { pragma: name, expected, found } },
  )
}
