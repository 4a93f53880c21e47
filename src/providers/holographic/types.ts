import type { CompletedTurn } from '../../coordinator/agent.js'

export interface Fact {
  readonly id: number
  readonly content: string
  readonly category: string
  readonly tags: string[]
  /** 0 to 1; feedback moves it. */
  readonly trust: number
  readonly entities: string[]
  /** How well it answers, where something was asked: higher is better; comparable within one answer only. */
  readonly score?: number
}

export interface Contradiction {
  readonly a: Fact
  readonly b: Fact
  readonly score: number
  /** What both are about. Empty when both are about the speaker. */
  readonly entities: string[]
}

/** One statement worth keeping. */
export interface ExtractedFact {
  readonly content: string
  readonly category?: string
  readonly tags?: readonly string[]
}

export interface ExtractContext {
  readonly sessionId: string
  /** Aborted when the commit's time limit passes: hand it to whatever is called. */
  readonly signal: AbortSignal
}

/**
 * Turns into facts. It may run more than once for the same turns (a crash, a retry), it is never called while the
 * database is locked, and long segments come in several calls.
 */
export type Extractor = (
  turns: readonly CompletedTurn[],
  context: ExtractContext,
) => Iterable<string | ExtractedFact> | Promise<Iterable<string | ExtractedFact>>

export interface FactPatch {
  readonly content?: string
  readonly category?: string
  readonly tags?: readonly string[]
  /** Added to the trust, then kept within 0 and 1. */
  readonly trustDelta?: number
}
