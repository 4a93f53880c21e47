import { recordTurn } from '../../../src/core/index.js'
import { LocalHost } from '../../../src/ledger/sqlite/host.js'
import { SqliteLedger } from '../../../src/ledger/sqlite/ledger.js'
import { WatchedHost } from '../../support/watched-host.js'

/** A count fails, another one opens the file anew, and the ledger is closed meanwhile; all while it has tidying to do. */
const [path = ''] = process.argv.slice(2)
let isFailing = false
const ledger = new SqliteLedger({ path }, (at) => {
  const host = new LocalHost({ path, allowNetworkFileSystem: false, at })
  return new WatchedHost(host, [], (call) => (isFailing && call === 'stats' ? 'before' : undefined))
})
await ledger.open()
const turn = { owner: 'agent', at: 1, turnId: undefined, messages: '["text"]' }
await ledger.transact('s', (state) => recordTurn(state, turn))
isFailing = true
await ledger.stats().catch(() => undefined)
isFailing = false
const again = ledger.stats().catch((error: unknown) => error)
await ledger.close()
await again
process.stdout.write('closed')
