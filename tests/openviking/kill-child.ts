import { OpenVikingProvider } from '../../src/providers/openviking/index.js'
import { makeTurns } from './turns.js'
import { play } from './play.js'

/** A client that commits one segment under a given key until somebody kills it. */
const [endpoint = '', key = '', count = '1'] = process.argv.slice(2)
const provider = new OpenVikingProvider({ endpoint, settlePollMs: 0 })
await play(provider.agent('s'), makeTurns(Number(count)), { key })
