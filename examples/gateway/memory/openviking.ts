import { OpenVikingProvider } from 'tidemark/openviking'
import { linesOf, type Memory } from './memory.js'

/** An OpenViking server. It extracts in its own time: the lifecycle keeps every turn until that has succeeded. */
export function openVikingMemory(options: { readonly endpoint: string; readonly apiKey: string | undefined }): Memory {
  const { endpoint, apiKey } = options
  const provider = new OpenVikingProvider({ endpoint, ...(apiKey === undefined ? {} : { apiKey }) })
  return {
    name: 'OpenViking',
    agent: (sessionId) => provider.agent(sessionId),
    recall: async (query, { sessionId, signal }) => linesOf(await provider.recall(query, { sessionId, signal })),
    tools: () => [],
    close: () => provider.close(),
  }
}
