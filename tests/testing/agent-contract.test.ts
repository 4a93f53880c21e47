import { describe, expect, test } from 'vitest'
import type { CompletedTurn, MemoryAgent } from '../../src/index.js'
import { agentContract, type AgentUnderTest } from '../../src/testing/index.js'

/** A provider in a Map that remembers keys, as a good one does; with faults that the contract has to find. */
function provider(fault?: 'forgets keys' | 'mixes sessions' | 'answers nonsense'): AgentUnderTest {
  const learned = new Map<string, number[]>()
  const keys = new Set<string>()
  const agent = (): MemoryAgent => ({
    async commitMemorySession(commit) {
      commit.signal.throwIfAborted()
      if (keys.has(commit.idempotencyKey) && fault !== 'forgets keys') return { status: 'nothing' }
      keys.add(commit.idempotencyKey)
      const turns: CompletedTurn[] = []
      for await (const turn of commit.turns()) turns.push(turn)
      const id = fault === 'mixes sessions' ? commit.sessionId.toLowerCase() : commit.sessionId
      learned.set(id, [...(learned.get(id) ?? []), ...turns.map(({ generation }) => generation)])
      return fault === 'answers nonsense' ? ('yes' as never) : { status: 'committed' }
    },
  })
  return {
    agent,
    learned: async (sessionId) => {
      const counts = new Map<number, number>()
      for (const generation of learned.get(sessionId) ?? []) counts.set(generation, (counts.get(generation) ?? 0) + 1)
      return counts
    },
  }
}

describe('a good provider', () => {
  agentContract({ it: test, open: async () => provider() })
})

test.each(['forgets keys', 'mixes sessions', 'answers nonsense'] as const)(
  'the contract finds a provider that %s',
  async (fault) => {
    const runs: (() => Promise<void>)[] = []
    agentContract({ it: (_name, run) => void runs.push(run), open: async () => provider(fault) })
    const results = await Promise.allSettled(runs.map((run) => run()))
    expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
  },
)
