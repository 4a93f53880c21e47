import { describe, it } from 'vitest'
import { OpenVikingProvider } from '../../src/providers/openviking/index.js'
import { agentContract } from '../../src/testing/index.js'
import { startOpenVikingDouble } from '../support/openviking-double.js'

describe.each(['0.4.16', '0.4.6', '0.3.4', '0.2.8'] as const)('the agent of OpenViking %s', (profile) => {
  agentContract({
    it,
    async open() {
      const double = await startOpenVikingDouble({ profile })
      const provider = new OpenVikingProvider({ endpoint: double.url, settlePollMs: 0 })
      return {
        agent: (sessionId) => provider.agent(sessionId),
        learned(sessionId) {
          const counted = Object.entries(double.stats.extracted)
            .filter(([turn]) => turn.slice(0, turn.lastIndexOf(':')) === sessionId)
            .map(([turn, count]) => [Number(turn.slice(turn.lastIndexOf(':') + 1)), count] as const)
          return Promise.resolve(new Map(counted))
        },
        async close() {
          await provider.close()
          await double.close()
        },
      }
    },
  })
})
