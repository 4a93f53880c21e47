import { TidemarkError } from '../../base/errors.js'
import type { CommitAnswer, CompletedTurn, MemoryAgent, MemoryCommit } from '../../coordinator/agent.js'
import { cleanCategory, cleanContent, cleanTags } from './content.js'
import { holdsSecret } from './secrets.js'
import type { ExtractedFact, Extractor } from './types.js'

/** A fact that may be stored: checked, and without a secret. */
export interface LearnedFact {
  readonly content: string
  readonly category: string
  readonly tags: string
}

/** What the agent needs of the database: both are one transaction each. */
export interface Learning {
  readonly extract: Extractor
  /** The number of facts that this key has stored; undefined if it is new. */
  recorded(idempotencyKey: string): number | undefined
  /** Facts and key together, or neither. Gives the number stored under the key, by whoever was first. */
  learn(commit: MemoryCommit, facts: readonly LearnedFact[]): number
}

/** Turns handed to the extractor in one call: a session of any length passes through in bounded memory. */
const TURNS_PER_CALL = 100

export function createAgent(sessionId: string, learning: Learning): MemoryAgent {
  return {
    agentId: `holographic:${sessionId}`,
    provider: 'holographic',
    async commitMemorySession(commit: MemoryCommit): Promise<CommitAnswer> {
      if (typeof commit.idempotencyKey !== 'string' || commit.idempotencyKey === '') {
        throw new TypeError(
          'commit.idempotencyKey must be a non-empty string: without it a segment could be learned twice',
        )
      }
      const before = learning.recorded(commit.idempotencyKey)
      if (before !== undefined) return answer(before)
      const facts = await extractAll(commit, learning.extract)
      // Extraction took its time: whoever gave up on this attempt must not find it done behind their back.
      throwIfAborted(commit.signal)
      return answer(learning.learn(commit, facts))
    },
  }
}

function answer(stored: number): CommitAnswer {
  return stored > 0 ? { status: 'committed' } : { status: 'nothing' }
}

async function extractAll(commit: MemoryCommit, extract: Extractor): Promise<LearnedFact[]> {
  const facts: LearnedFact[] = []
  let turns: CompletedTurn[] = []
  const flush = async (): Promise<void> => {
    throwIfAborted(commit.signal)
    const batch = turns
    turns = []
    facts.push(...checkFacts(await extract(batch, { sessionId: commit.sessionId, signal: commit.signal })))
  }
  for await (const turn of commit.turns()) {
    turns.push(turn)
    if (turns.length === TURNS_PER_CALL) await flush()
  }
  if (turns.length > 0) await flush()
  return facts
}

/** The default extractor looks for secrets itself; one that a host plugged in may not. */
function checkFacts(extracted: unknown): LearnedFact[] {
  if (typeof extracted !== 'object' || extracted === null || !(Symbol.iterator in extracted)) {
    throw unusable('an array of facts', extracted)
  }
  return [...(extracted as Iterable<unknown>)].flatMap((item) => {
    const fact = typeof item === 'string' ? { content: item } : item
    if (typeof fact !== 'object' || fact === null || !('content' in fact)) throw unusable('facts with a content', fact)
    const { content, category = 'general', tags = [] } = fact as ExtractedFact
    try {
      const learned = { content: cleanContent(content), category: cleanCategory(category), tags: cleanTags(tags) }
      return holdsSecret(learned.content) ? [] : [learned]
    } catch (error) {
      throw unusable('facts that can be stored', fact, error)
    }
  })
}

function unusable(expected: string, found: unknown, cause?: unknown): TidemarkError {
  const reason = cause instanceof Error ? `: ${cause.message}` : `, got ${found === null ? 'null' : typeof found}`
  return new TidemarkError('PROVIDER_FAILED', `extract must give ${expected}${reason}`, { cause })
}

function throwIfAborted(signal: AbortSignal): void {
  if (!signal.aborted) return
  throw new TidemarkError('ABORTED', 'The commit was aborted before its facts were stored; nothing was stored', {
    cause: signal.reason,
  })
}
