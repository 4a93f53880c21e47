import { MemoryLifecycle } from '../../src/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { OpenVikingProvider } from '../../src/providers/openviking/index.js'
import { makeTurns } from './turns.js'

/** A whole client: marks turns, comes to a boundary, and goes on until somebody kills it. */
const [endpoint = '', path = ''] = process.argv.slice(2)
const provider = new OpenVikingProvider({ endpoint, settlePollMs: 0 })
const lifecycle = await MemoryLifecycle.open({
  ledger: sqliteLedger({ path }),
  retry: { attempts: 8, minDelayMs: 1, maxDelayMs: 4 },
})
for (const { messages } of makeTurns(3))
  await lifecycle.markTurnCompleted('s', { agent: provider.agent('s'), messages })
console.log('marked')
lifecycle.switchSession('s', 'next')
setInterval(() => undefined, 1000)
