import type { Clock } from '../../src/base/clock.js'
import type { MemoryCommit } from '../../src/coordinator/agent.js'
import { extractStatements, type Extractor, type HolographicOptions } from '../../src/providers/holographic/index.js'

/** Time stands still, so that two runs that did the same wrote the same. */
const STILL: Clock = { now: () => Date.UTC(2026, 0, 1), setTimer: () => () => undefined }

export const SEGMENT_OPTIONS: Omit<HolographicOptions, 'path'> = {
  dimensions: 256,
  clock: STILL,
  busyTimeoutMs: 30_000,
}

/**
 * The statements, and one fact that is different in every process. Equal statements are stored once anyway; this one
 * shows whether a segment was stored twice.
 */
export function extractIn(run: string): Extractor {
  return (turns) => [
    ...extractStatements(turns),
    { content: `turn ${turns[0]?.generation ?? 0} was read in run ${run}`, category: 'attempt' },
  ]
}

/** The n-th segment of a conversation: new statements, one that every segment has, one of the segment before, an alias. */
export function segment(n: number): MemoryCommit {
  const said = [
    `I like dish ${n} from Town${n % 17}. We decided to meet Person${n % 5} on day ${n}.`,
    `The project uses tool${n}. I always drink tea. I like dish ${Math.max(0, n - 1)} from Town${Math.max(0, n - 1) % 17}.`,
    `I use Thing${n} aka Nick${n} for work. Мне нравится город ${n}. 我喜欢第${n}号茶。`,
  ]
  return {
    sessionId: 's',
    from: n * said.length + 1,
    to: (n + 1) * said.length,
    attempt: 1,
    reason: 'recovery',
    idempotencyKey: `segment-${n}`,
    signal: new AbortController().signal,
    async *turns() {
      for (const [i, content] of said.entries()) {
        yield {
          sessionId: 's',
          generation: n * said.length + i + 1,
          messages: [{ role: 'user', content }],
          completedAt: 0,
        }
      }
    },
  }
}
