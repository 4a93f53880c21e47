import type { CompletedTurn, MemoryCommit } from '../../src/coordinator/agent.js'

export const makeTurns = (count: number, sessionId = 's', from = 1): CompletedTurn[] =>
  Array.from({ length: count }, (_, index) => ({
    sessionId,
    generation: from + index,
    messages: [
      { role: 'user', content: `question ${from + index}` },
      { role: 'assistant', content: `answer ${from + index}` },
    ],
    completedAt: 1_800_000_000_000 + index,
  }))

export function makeCommit(
  turns: readonly CompletedTurn[],
  key: string,
  given: Partial<MemoryCommit> = {},
): MemoryCommit {
  return {
    sessionId: turns[0]?.sessionId ?? 's',
    from: turns[0]?.generation ?? 1,
    to: turns.at(-1)?.generation ?? 1,
    attempt: 1,
    reason: 'manual',
    idempotencyKey: key,
    signal: new AbortController().signal,
    async *turns() {
      yield* turns
    },
    ...given,
  }
}

/** Every turn exactly once, as the double counts it. */
export const once = (turns: readonly CompletedTurn[]): Record<string, number> =>
  Object.fromEntries(turns.map((turn) => [`${turn.sessionId}:${turn.generation}`, 1]))
