import type { JournalEvent, RunJournal } from 'tidemark/journal'
import { Inbox } from '../inbox.js'

/** A reader this far behind gets the rest from the journal instead of from memory. */
const LONGEST_WAIT = 1_000

/** One run that works now, and whoever watches it. */
export class LiveRun {
  readonly #watchers = new Set<Inbox<JournalEvent>>()
  #isOver = false

  publish(event: JournalEvent): void {
    for (const watcher of this.#watchers) watcher.put(event)
  }

  end(): void {
    this.#isOver = true
    for (const watcher of this.#watchers) watcher.end()
    this.#watchers.clear()
  }

  watch(signal: AbortSignal): Inbox<JournalEvent> {
    const watcher = new Inbox<JournalEvent>({ limit: LONGEST_WAIT, signal })
    // A reader may have found the run working and begin to read when it has ended.
    if (this.#isOver) watcher.end()
    else this.#watchers.add(watcher)
    signal.addEventListener('abort', () => this.#watchers.delete(watcher), { once: true })
    return watcher
  }
}

/**
 * The events of a run behind a cursor, each once and in order: first what the journal holds, then what happens, at last
 * the end that the session store wrote. A run that does not work any more is simply read to its end.
 */
export async function* followRun(
  journal: Pick<RunJournal, 'read'>,
  run: { readonly sessionId: string; readonly runId: string; readonly live: LiveRun | undefined },
  cursor: { readonly after: number; readonly signal: AbortSignal },
): AsyncGenerator<JournalEvent, void> {
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
    let arrived = await watcher?.take()
    for (; arrived !== undefined && arrived !== 'behind'; arrived = await watcher?.take()) {
      for (const event of arrived) {
        if (event.seq <= after) continue
        after = event.seq
        yield event
      }
    }
    if (arrived === 'behind') continue
    if (!signal.aborted) yield* journal.read(sessionId, runId, { after })
    return
  }
}
