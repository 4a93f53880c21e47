import type { JournalEvent, RunJournal } from 'tidemark/journal'

/** A reader this far behind gets the rest from the journal instead of from memory. */
const LONGEST_QUEUE = 1_000

/** One run that works now, and whoever watches it. */
export class LiveRun {
  readonly #watchers = new Set<Watcher>()

  publish(event: JournalEvent): void {
    for (const watcher of this.#watchers) watcher.push(event)
  }

  end(): void {
    for (const watcher of this.#watchers) watcher.end()
    this.#watchers.clear()
  }

  watch(signal: AbortSignal): Watcher {
    const watcher = new Watcher()
    this.#watchers.add(watcher)
    const stop = (): void => {
      watcher.end()
      this.#watchers.delete(watcher)
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    return watcher
  }
}

class Watcher {
  #queue: JournalEvent[] = []
  #ended = false
  #wake: (() => void) | undefined

  push(event: JournalEvent): void {
    this.#queue.push(event)
    this.#wake?.()
  }

  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  /** What came since the last call; `undefined` when the run has ended and all was handed out. */
  async next(): Promise<readonly JournalEvent[] | 'behind' | undefined> {
    if (this.#queue.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
    }
    const events = this.#queue
    this.#queue = []
    if (events.length > LONGEST_QUEUE) return 'behind'
    return events.length === 0 && this.#ended ? undefined : events
  }
}

/**
 * The events of a run behind a cursor, each once and in order: first what the journal holds, then what happens, at last
 * the end that the session store wrote. A run that does not work any more is simply read to its end.
 */
export async function* followRun(
  journal: RunJournal,
  run: { readonly sessionId: string; readonly runId: string; readonly live: LiveRun | undefined },
  cursor: { readonly after: number; readonly signal: AbortSignal },
): AsyncGenerator<JournalEvent> {
  const { sessionId, runId, live } = run
  const { signal } = cursor
  let { after } = cursor
  // Watched before the journal is read: what is appended in between comes twice and is skipped once.
  const watcher = live?.watch(signal)
  for (;;) {
    for await (const event of journal.read(sessionId, runId, { after })) {
      after = event.seq
      yield event
    }
    for (let events = await watcher?.next(); ; events = await watcher?.next()) {
      if (events === 'behind') break
      if (events === undefined) {
        if (signal.aborted) return
        yield* journal.read(sessionId, runId, { after })
        return
      }
      for (const event of events) {
        if (event.seq <= after) continue
        after = event.seq
        yield event
      }
    }
  }
}
