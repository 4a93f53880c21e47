import type { MemoryAgent } from 'tidemark'
export class AgentPool {
  constructor(readonly options: { lifecycle: unknown; max: number; create: (sessionId: string) => MemoryAgent }) {}
  use<T>(sessionId: string, work: (agent: MemoryAgent) => Promise<T>): Promise<T> {
    return work(this.options.create(sessionId))
  }
  async close(): Promise<void> {}
}
