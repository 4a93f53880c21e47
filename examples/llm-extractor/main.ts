import { HolographicProvider } from 'tidemark/holographic'
import { llmExtractor } from './extractor.js'
import { startStandIn } from './stand-in.js'

// A model of your own: OPENAI_BASE_URL=https://… OPENAI_API_KEY=… OPENAI_MODEL=… npx tsx examples/llm-extractor/main.ts
const given = process.env['OPENAI_BASE_URL']
const standIn = given === undefined ? await startStandIn() : undefined
const apiKey = process.env['OPENAI_API_KEY']

const memory = await HolographicProvider.open({
  path: ':memory:',
  extract: llmExtractor({
    baseUrl: given ?? standIn?.baseUrl ?? '',
    model: process.env['OPENAI_MODEL'] ?? 'gpt-4o-mini',
    ...(apiKey === undefined ? {} : { apiKey }),
  }),
})

// In a gateway the coordinator makes this call, at a boundary, with turns from its ledger.
await memory.agent('session-1').commitMemorySession({
  sessionId: 'session-1',
  from: 1,
  to: 1,
  attempt: 1,
  reason: 'manual',
  idempotencyKey: 'segment-1',
  signal: AbortSignal.timeout(60_000),
  async *turns() {
    const messages = [
      {
        role: 'user',
        content: 'Hi! I moved to Lisbon last week. I prefer trains to planes. What is the weather like?',
      },
      { role: 'assistant', content: 'Sunny. Welcome to Lisbon!' },
    ]
    yield { sessionId: 'session-1', generation: 1, messages, completedAt: Date.now() }
  },
})

console.log(await memory.list())
console.log(await memory.recall('Which trains leave from Lisbon?'))

await memory.close()
await standIn?.close()
