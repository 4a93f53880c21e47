import type { MemoryAgent } from 'tidemark'
import type { Tool } from '../tools/tool.js'

export interface RememberedFact {
  readonly id: number
  readonly content: string
  readonly category: string
  readonly trust: number
}

/** What the gateway asks of a memory provider, beside the agent that the lifecycle commits through. */
export interface Memory {
  readonly name: string
  agent(sessionId: string): MemoryAgent
  /** What is known about the words of a user, best first, one line each. */
  recall(query: string, options: { readonly sessionId: string; readonly signal: AbortSignal }): Promise<string[]>
  /** Tools with which a model can look things up by itself. */
  tools(): readonly Tool[]
  /** Missing where the provider keeps its facts to itself. */
  readonly facts?: {
    list(): Promise<RememberedFact[]>
    /** False if there is no such fact. */
    forget(id: number): Promise<boolean>
  }
  close(): Promise<void>
}

/** Providers give recalled memories as a block for a prompt: one line a memory, each with a dash before it. */
export function linesOf(block: string): string[] {
  return block.split('\n').flatMap((line) => /^- (?:\[[\d.]+\] )?(.+)$/u.exec(line)?.[1] ?? [])
}
