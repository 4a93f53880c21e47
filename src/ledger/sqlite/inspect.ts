import { TidemarkError } from '../../base/errors.js'
import type { SqlDatabase } from '../../base/sqlite.js'
import { fileDamaged, SQLITE_CORRUPT } from './failure.js'
import { readHolder } from './files.js'
import { readPragma, setPragma } from './pragma.js'
import { APPLICATION_ID, migrate, readSchema, refuseNewer } from './schema.js'
import { findWalDamage } from './wal.js'

/** Looks at everything before anything is written. Gives the version of the file; 0 for a new one. */
export async function inspectLedger(db: SqlDatabase, path: string, openScratch: () => SqlDatabase): Promise<number> {
  setPragma(db, 'busy_timeout', '0', 0)
  setPragma(db, 'locking_mode', 'EXCLUSIVE', 'exclusive')
  const walDamage = await findWalDamage(path)
  if (walDamage !== undefined) throw fileDamaged(walDamage)
  const version = refuseNewer(db, path)
  const isEmpty = db.prepare('SELECT name FROM sqlite_schema LIMIT 1').get() === undefined
  if (isEmpty) {
    // A ledger that was in use before cannot be empty: somebody or something cut it off.
    if (version !== 0 || (await readHolder(path)) !== undefined) throw fileDamaged('the file holds no tables any more')
    return 0
  }
  if (readPragma(db, 'application_id') !== APPLICATION_ID) throw foreign(path)
  if (version === 0) throw fileDamaged('its version number is missing')
  const finding = checkIntegrity(db)
  if (finding !== 'ok') throw fileDamaged(finding)
  if (readSchema(db) !== expectedSchema(openScratch(), version))
    throw fileDamaged('the definition of a table is damaged')
  return version
}

/** What SQLite says of the whole file. A page that the disk does not give is no finding: such a file stays where it is. */
function checkIntegrity(db: SqlDatabase): string {
  const finding = String(db.prepare('PRAGMA integrity_check(1)').get()?.['integrity_check'])
  const code = Number(/error code=(\d+)/.exec(finding)?.[1] ?? SQLITE_CORRUPT)
  if ((code & 0xff) !== SQLITE_CORRUPT) throw Object.assign(new Error(finding), { errcode: code })
  return finding
}

function expectedSchema(scratch: SqlDatabase, version: number): string {
  migrate(scratch, 0, version)
  const schema = readSchema(scratch)
  scratch.close()
  return schema
}

function foreign(path: string): TidemarkError {
  return new TidemarkError(
    'CORRUPT',
    `The file ${path} is a database, but not a tidemark ledger. It was left as it is. Use another path.`,
    { details: { path } },
  )
}
