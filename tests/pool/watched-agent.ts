import type { MemoryAgent, MemoryCommit } from '../../src/index.js'

/** An agent that notices when it is misused. */
export interface WatchedAgent extends MemoryAgent {
  readonly sessionId: string
  inUse: number
  closes: number
  /** Serves a turn; `work` is what the turn waits for. */
  serve(work: () => Promise<void>): Promise<void>
}

/** What agents did to their provider, and what was done to them that should not be. */
export class Watch {
  readonly agents: WatchedAgent[] = []
  readonly violations: string[] = []
  /** How often each generation was committed, by `session:generation`. */
  readonly committed = new Map<string, number>()
  /** The most agents of one session that were open at once. */
  mostOpen = 0

  create(
    sessionId: string,
    provider: {
      readonly commit: (commit: MemoryCommit) => Promise<void>
      readonly close: () => Promise<void>
    },
  ): WatchedAgent {
    const agent: WatchedAgent = {
      sessionId,
      inUse: 0,
      closes: 0,
      serve: async (work) => {
        this.#check(agent, 'served a turn')
        agent.inUse += 1
        try {
          await work()
        } finally {
          this.#check(agent, 'was closed during a turn')
          agent.inUse -= 1
        }
      },
      commitMemorySession: async (commit) => {
        this.#check(agent, 'was asked to commit')
        await provider.commit(commit)
        this.#check(agent, 'was closed during a commit')
        for (let generation = commit.from; generation <= commit.to; generation += 1) {
          const key = `${sessionId}:${generation}`
          this.committed.set(key, (this.committed.get(key) ?? 0) + 1)
        }
      },
      close: async () => {
        agent.closes += 1
        if (agent.inUse > 0) this.violations.push(`the agent of ${sessionId} was closed while in use`)
        if (agent.closes > 1) this.violations.push(`the agent of ${sessionId} was closed ${agent.closes} times`)
        await provider.close()
      },
    }
    this.agents.push(agent)
    const open = this.agents.filter((each) => each.sessionId === sessionId && each.closes === 0).length
    this.mostOpen = Math.max(this.mostOpen, open)
    return agent
  }

  #check(agent: WatchedAgent, what: string): void {
    if (agent.closes > 0) this.violations.push(`the closed agent of ${agent.sessionId} ${what}`)
  }
}
