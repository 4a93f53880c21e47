import { HolographicProvider } from 'tidemark/holographic'
import { linesOf, type Memory } from './memory.js'

const SHOWN_FACTS = 100
const RECALLED_FACTS = 5
/** "What do you know about me?" shares no word with any fact. */
const ABOUT_THE_USER = /\b(?:about me|who am i|hello|hi)\b/i

/** The built-in memory: one SQLite file, no server, no key. */
export async function openHolographicMemory(path: string): Promise<Memory> {
  const provider = await HolographicProvider.open({ path })
  return {
    name: 'Holographic (embedded)',
    agent: (sessionId) => provider.agent(sessionId),
    async recall(query) {
      const found = linesOf(await provider.recall(query, { limit: RECALLED_FACTS }))
      if (found.length > 0 || !ABOUT_THE_USER.test(query)) return found
      return (await provider.list({ limit: RECALLED_FACTS })).map(({ content }) => content)
    },
    tools: () =>
      provider.tools().map((schema) => ({
        schema,
        run: (args: unknown) => provider.handleToolCall(schema.function.name, args),
      })),
    facts: {
      list: () => provider.list({ limit: SHOWN_FACTS }),
      forget: (id) => provider.remove(id),
    },
    close: () => provider.close(),
  }
}
