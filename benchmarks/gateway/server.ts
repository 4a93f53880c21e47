import { join } from 'node:path'
import { pino } from 'pino'
import { readConfig } from '../../examples/gateway/config.js'
import { openHolographicMemory } from '../../examples/gateway/memory/holographic.js'
import { offlineModel } from '../../examples/gateway/model/offline.js'
import { start } from '../../examples/gateway/start.js'

/** The gateway as it is, with a model that speaks at a given pace. */
const config = readConfig(process.env)
const { url } = await start({
  ...config,
  model: offlineModel({ wordMs: Number(process.env['WORD_MS']) }),
  openMemory: (directory) => openHolographicMemory(join(directory, 'memory.sqlite')),
  logger: pino({ level: 'error' }, pino.destination(2)),
})
process.stdout.write(`${url}\n`)
