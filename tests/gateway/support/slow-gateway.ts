import { join } from 'node:path'
import { pino } from 'pino'
import { readConfig } from '../../../examples/gateway/config.js'
import { openHolographicMemory } from '../../../examples/gateway/memory/holographic.js'
import { offlineModel } from '../../../examples/gateway/model/offline.js'
import { start } from '../../../examples/gateway/start.js'

/** The gateway, with a provider that takes COMMIT_MS for each commit. */
const config = readConfig(process.env)
const commitMs = Number(process.env['COMMIT_MS'])
const { url } = await start({
  ...config,
  model: offlineModel({ wordMs: 0 }),
  logger: pino({ level: config.logLevel }, pino.destination(2)),
  openMemory: async (directory) => {
    const memory = await openHolographicMemory(join(directory, 'memory.sqlite'))
    return {
      ...memory,
      agent: (sessionId) => {
        const agent = memory.agent(sessionId)
        return {
          ...agent,
          commitMemorySession: async (commit) => {
            await new Promise((resolve) => setTimeout(resolve, commitMs))
            return agent.commitMemorySession(commit)
          },
        }
      },
    }
  },
})
process.stdout.write(`${url}\n`)
