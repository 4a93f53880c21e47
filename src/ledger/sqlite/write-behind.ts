import type { CachedSession } from './cached-session.js'

export interface Lag {
  /** A session's row is written at the latest when so many rows were added to the outbox since it fell behind. */
  readonly rows: number
  /** How far all sessions are written is noted every so many rows. */
  readonly noteEvery: number
}

/** What is read again after a crash: some ten thousand rows, a few hundredths of a second. */
const LAG: Lag = Object.freeze({ rows: 8_192, noteEvery: 1_024 })

/**
 * A turn whose text goes to the outbox is durable with that row alone: it says which session grew and by which
 * generation. The session's own row is written later, once for many turns. After a crash `catch-up.ts` does it, from the
 * rows of the outbox behind the last note of how far all sessions are written.
 */
export class WriteBehind {
  /** In the order in which they fell behind; all of them are in the cache. */
  readonly #sessions = new Set<CachedSession>()
  readonly #lag: Lag
  #noted = 0

  constructor(lag: Lag = LAG) {
    this.#lag = lag
  }

  get isEmpty(): boolean {
    return this.#sessions.size === 0
  }

  /** The file was opened: nobody is behind, and this is what it says of itself. */
  reset(noted: number): void {
    this.#sessions.clear()
    this.#noted = noted
  }

  defer(session: CachedSession): void {
    this.#sessions.add(session)
  }

  /** Whoever writes the row of a session tells. */
  noteWritten(session: CachedSession): void {
    if (session.unwritten === 0) return
    session.unwritten = 0
    this.#sessions.delete(session)
  }

  /** The sessions that were behind for longest, or all of them. */
  *due(nextOutbox: number, which: 'old' | 'all'): Generator<CachedSession> {
    const limit = which === 'all' ? nextOutbox : nextOutbox - this.#lag.rows
    for (const session of this.#sessions) {
      if (session.unwritten >= limit) return
      yield session
    }
  }

  /** Up to which row of the outbox all sessions are written, if it is time to note that. */
  takeNote(nextOutbox: number, which: 'old' | 'all'): number | undefined {
    const [oldest] = this.#sessions
    const through = (oldest?.unwritten ?? nextOutbox) - 1
    if (through === this.#noted || (which === 'old' && through < this.#noted + this.#lag.noteEvery)) return undefined
    this.#noted = through
    return through
  }
}
