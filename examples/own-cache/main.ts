/**
 * Somebody's own lru-cache of agents, made safe with `evictionHook`. Ten conversations share a cache of three agents;
 * whoever leaves the cache is flushed, then closed. At the end, or on Ctrl-C, the rest is handed over.
 *
 *   npx tsx examples/own-cache/main.ts
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { type MemoryAgent, MemoryLifecycle } from 'tidemark'
import { evictionHook } from 'tidemark/pool'
import { gracefulShutdown } from 'tidemark/shutdown'

const learned = new Map<string, number>()
let closed = 0

function openAgent(sessionId: string): MemoryAgent {
  return {
    agentId: sessionId,
    // A provider that takes its time.
    async commitMemorySession(commit) {
      await sleep(20)
      for await (const turn of commit.turns())
        learned.set(sessionId, (learned.get(sessionId) ?? 0) + turn.messages.length)
    },
    close() {
      closed += 1
    },
  }
}

const lifecycle = await MemoryLifecycle.open()
const hook = evictionHook(lifecycle)
const cache = new LRUCache<string, MemoryAgent>({ max: 3, dispose: hook })
const shutdown = gracefulShutdown({
  lifecycle,
  pool: {
    async close() {
      cache.clear()
      await hook.settled()
    },
  },
})

async function serve(sessionId: string, text: string): Promise<void> {
  const agent = cache.get(sessionId) ?? openAgent(sessionId)
  cache.set(sessionId, agent)
  // The cache may drop the agent while its turn runs. The hold keeps it open until the turn is recorded.
  const release = lifecycle.hold(sessionId)
  try {
    await sleep(5)
    await lifecycle.markTurnCompleted(sessionId, { agent, messages: [{ role: 'user', content: text }] })
  } finally {
    release()
  }
}

for (const text of ['hello', 'my name is Ada', 'what is my name?']) {
  for (let session = 1; session <= 10; session += 1) await serve(`session-${session}`, text)
}
console.log(`30 turns served; ${cache.size} agents in the cache, ${hook.pending} on their way out`)

const { exitCode } = await shutdown.shutdown()
const messages = [...learned.values()].reduce((sum, count) => sum + count, 0)
console.log(`learned ${messages} messages of ${learned.size} sessions; ${closed} agents closed`)
process.exitCode = exitCode
