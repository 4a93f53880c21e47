import { type MemoryAgent, MemoryLifecycle } from 'tidemark'

// Your memory provider, behind three lines: it learns when it is told that a stretch of conversation is over.
const agent: MemoryAgent = {
  agentId: 'support-bot',
  async commitMemorySession(commit) {
    for await (const turn of commit.turns()) console.log(`learning turn ${turn.generation}:`, turn.messages)
  },
}

const lifecycle = await MemoryLifecycle.open()
lifecycle.on('commit:succeeded', ({ sessionId, from, to }) => console.log(`${sessionId}: ${from}–${to} committed`))

// After each finished exchange: one line. Nothing is sent anywhere yet.
await lifecycle.markTurnCompleted('alice', { agent, messages: [{ role: 'user', content: 'I moved to Lisbon.' }] })
await lifecycle.markTurnCompleted('alice', { messages: [{ role: 'user', content: 'I need a quiet café.' }] })

// "New chat": both turns go out in one commit, in the background.
lifecycle.switchSession('alice', 'alice-2')

// The process ends: whatever is still dirty is committed, by the deadline.
console.log(await lifecycle.drain({ deadlineMs: 10_000 }))
await lifecycle.close()
