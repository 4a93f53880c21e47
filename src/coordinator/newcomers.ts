import type { AgentHandle, Agents, Standing } from './agents.js'

/** An agent that became the current one with a turn that may be known already. */
export interface Newcomer {
  readonly handle: AgentHandle
  readonly before: Standing
  /** Marks on their way that name it. */
  marks: number
}

interface Parts {
  readonly agents: Agents
  readonly register: (sessionId: string, handle: AgentHandle) => void
  readonly reinstate: (sessionId: string, handle: AgentHandle, before: Standing) => void
}

/**
 * A given agent becomes the current one at once, so that marks nobody waits for find it (L4). If its turn id turns out
 * to be known, the mark must change nothing (L12): then whoever stood there before does so again.
 */
export class Newcomers {
  readonly #parts: Parts
  readonly #bySession = new Map<string, Newcomer>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  come(sessionId: string, handle: AgentHandle, turnId: string | undefined): Newcomer | undefined {
    const { agents, register } = this.#parts
    // The usual case costs one look.
    if (this.#bySession.size === 0 && agents.current(sessionId) === handle) return undefined
    // It is the conversation's agent under its new id, and owns what still comes under this one (B7).
    if (agents.hasMoved(sessionId, handle)) return undefined
    if (turnId === undefined) this.settle(sessionId)
    const known = this.#bySession.get(sessionId)
    if (known?.handle === handle && agents.current(sessionId) === handle) {
      known.marks += 1
      return known
    }
    const before = turnId === undefined ? undefined : agents.standing(sessionId, handle)
    register(sessionId, handle)
    if (before === undefined) return undefined
    const newcomer: Newcomer = { handle, before, marks: 1 }
    this.#bySession.set(sessionId, newcomer)
    return newcomer
  }

  /** The current agent is so by another right as well. */
  settle(sessionId: string): void {
    this.#bySession.delete(sessionId)
  }

  /** One of its marks is over. If that failed nobody knows, and it stays. */
  conclude(sessionId: string, newcomer: Newcomer, end: 'new' | 'known' | 'failed'): void {
    newcomer.marks -= 1
    if (this.#bySession.get(sessionId) !== newcomer || (end === 'known' && newcomer.marks > 0)) return
    this.#bySession.delete(sessionId)
    if (end === 'known') this.#parts.reinstate(sessionId, newcomer.handle, newcomer.before)
  }
}
