import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { loadSqlite, type SqlDatabase } from '../../src/base/sqlite.js'
import { memoryLedger } from '../../src/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { closeConnection } from '../../src/ledger/sqlite/release.js'

/** The coordinator's suite runs over every ledger: TIDEMARK_TEST_LEDGER says which one this run is about. */
export const ledgerKind = process.env['TIDEMARK_TEST_LEDGER'] ?? 'memory'

export function freshLedger(): Ledger {
  switch (ledgerKind) {
    case 'memory':
      return memoryLedger()
    case 'sqlite':
      return sqliteLedger({ path: join(temporaryDirectory(), 'ledger.db') })
    default:
      throw new Error(`No such test ledger: ${ledgerKind}`)
  }
}

let root: string | undefined

afterAll(() => {
  if (root !== undefined) rmSync(root, { recursive: true, force: true })
  root = undefined
})

/** A directory of its own; all of them are gone when the tests of this file are over. */
export function temporaryDirectory(): string {
  root ??= mkdtempSync(join(tmpdir(), 'tidemark-test-'))
  return mkdtempSync(join(root, 'case-'))
}

/** Looks into the file as nobody else may: only while it is closed. */
export async function insideFile<T>(path: string, look: (db: SqlDatabase) => T): Promise<T> {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(path)
  try {
    return look(db)
  } finally {
    await closeConnection(db)
  }
}
