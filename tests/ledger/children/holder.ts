import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'

/** Opens a ledger and keeps it until it is killed. */
const [path = '', worker = 'false'] = process.argv.slice(2)
const ledger = sqliteLedger({ path, worker: worker === 'true' })
await ledger.open()
process.stdout.write('open\n')
setInterval(() => undefined, 60_000)
