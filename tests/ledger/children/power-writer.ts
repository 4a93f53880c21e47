import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { loadSqlite } from '../../../src/base/sqlite.js'
import { recordTurn } from '../../../src/core/index.js'
import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'

/** Writes without end and notes, outside of the file system whose power will be cut, how much was acknowledged. */
const [directory = '', acknowledgedPath = '', kind = 'ledger'] = process.argv.slice(2)
const file = openSync(acknowledgedPath, 'w')
const acknowledge = (count: number): void => {
  writeSync(file, String(count).padStart(12, '0'), 0)
}

async function writeLedger(): Promise<never> {
  const ledger = sqliteLedger({ path: join(directory, 'ledger.db') })
  await ledger.open()
  process.stdout.write('ready\n')
  for (let count = 1; ;) {
    const batch = Array.from({ length: 5 }, (_, index) => {
      const messages = JSON.stringify([`text ${count + index} ${'x'.repeat(200)}`])
      return ledger.transact('s', (state) => recordTurn(state, { owner: 'a', at: 1, turnId: undefined, messages }))
    })
    await Promise.all(batch)
    count += batch.length
    acknowledge(count - 1)
  }
}

/** The control: the same through SQLite without syncs. If cuts do not hurt this one, they prove nothing. */
async function writeUnsynced(): Promise<never> {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(join(directory, 'control.db'))
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)')
  const insert = db.prepare('INSERT INTO rows (text) VALUES (?)')
  process.stdout.write('ready\n')
  for (let count = 1; ; count += 1) {
    insert.run(`text ${count} ${'x'.repeat(200)}`)
    acknowledge(count)
    if (count % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
}

await (kind === 'ledger' ? writeLedger() : writeUnsynced())
