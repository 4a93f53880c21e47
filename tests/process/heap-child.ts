import { type MemoryAgent, MemoryLifecycle } from '../../src/index.js'

const SESSIONS = 1_000_000
const collect = globalThis.gc
if (collect === undefined) throw new Error('run with --expose-gc')

let commits = 0
const agent: MemoryAgent = {
  agentId: 'a',
  commitMemorySession() {
    commits += 1
  },
}
const lifecycle = await MemoryLifecycle.open()

async function live(sessionId: string): Promise<void> {
  await lifecycle.markTurnCompleted(sessionId, { agent, messages: ['hello'] })
  await lifecycle.commit(sessionId)
  if (!(await lifecycle.discard(sessionId))) throw new Error(`${sessionId} was not clean`)
}

// Warm up, so that what is measured is sessions and not compiled code.
for (let index = 0; index < 10_000; index += 1) await live(`warm-${index}`)
collect()
const before = process.memoryUsage().heapUsed
for (let index = 0; index < SESSIONS; index += 1) await live(`session-${index}`)
collect()
const grownBytes = process.memoryUsage().heapUsed - before
if (commits !== SESSIONS + 10_000) throw new Error(`${commits} commits`)
await lifecycle.close()
console.log(JSON.stringify({ sessions: SESSIONS, grownBytes }))
