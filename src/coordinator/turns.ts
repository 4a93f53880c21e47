import type { OutboxEntry, Range } from '../core/index.js'
import type { Ledger } from '../ledger/ledger.js'
import type { CompletedTurn } from './agent.js'
import type { Transcript } from './options.js'

export interface TurnSource {
  readonly ledger: Ledger
  readonly transcript: Transcript | undefined
}

/** The turns of a segment, oldest first: from the outbox, and from the host's transcript where that has none (C10). */
export async function* readTurns(
  source: TurnSource,
  sessionId: string,
  segment: Range & { readonly gaps: readonly Range[] | undefined },
): AsyncGenerator<CompletedTurn> {
  let next = segment.from
  for await (const entry of source.ledger.outbox(sessionId, segment.from, segment.to)) {
    if (entry.messages === undefined || entry.generation < next) continue
    yield* readTranscript(source, sessionId, next, entry.generation - 1, segment.gaps)
    yield turnOf(sessionId, entry, entry.messages)
    next = entry.generation + 1
  }
  yield* readTranscript(source, sessionId, next, segment.to, segment.gaps)
}

/** Asks for what lies between retracted turns, run by run. */
async function* readTranscript(
  { transcript }: TurnSource,
  sessionId: string,
  from: number,
  to: number,
  gaps: readonly Range[] | undefined,
): AsyncGenerator<CompletedTurn> {
  if (transcript === undefined) return
  let next = from
  for (const gap of gaps ?? []) {
    if (gap.to < next || gap.from > to) continue
    if (gap.from > next) yield* transcript(sessionId, next, gap.from - 1)
    next = gap.to + 1
  }
  if (next <= to) yield* transcript(sessionId, next, to)
}

function turnOf(sessionId: string, entry: OutboxEntry, messages: string): CompletedTurn {
  return {
    sessionId,
    generation: entry.generation,
    messages: JSON.parse(messages) as readonly unknown[],
    completedAt: entry.at,
  }
}
