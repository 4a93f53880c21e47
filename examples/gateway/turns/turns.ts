import { randomUUID } from 'node:crypto'
import type { AgentPool } from 'tidemark/pool'
import type { JournalEvent } from 'tidemark/journal'
import type { Session } from 'tidemark/sessions'
import { ModelError } from '../model/model.js'
import { notFound, RequestError } from '../errors.js'
import { followRun, LiveRun } from './live-runs.js'
import { Run, type RunParts } from './run.js'
import { markMissing, turnMarkOf } from './turn-mark.js'

export interface TurnParts extends RunParts {
  readonly pool: AgentPool
}

interface Working {
  readonly runId: string
  readonly live: LiveRun
  readonly abort: AbortController
  done: Promise<void>
}

export interface Undone {
  readonly text: string
  /** Turns withdrawn from memory, and turns that a provider had already been offered. */
  readonly retracted: number
  readonly offered: number
}

const LONGEST_TITLE = 60
/** Why a run was aborted, if not by the user. */
const SHUTDOWN = Symbol('shutdown')

/** Begins, cancels, undoes and repeats turns: one at a time in each session. */
export class Turns {
  readonly #parts: TurnParts
  /** A session is here while a turn runs in it, or while its history is being changed. */
  readonly #busy = new Map<string, Working | 'changing'>()

  constructor(parts: TurnParts) {
    this.#parts = parts
  }

  /** A chat as it is now. An answer that nobody writes any more is brought to its end first. */
  async read(sessionId: string): Promise<Session | undefined> {
    const { sessions, logger } = this.#parts
    const session = await sessions.get(sessionId)
    const runId = session?.activeRunId ?? null
    if (runId === null || this.isRunning(sessionId, runId)) return session
    // Another reader is recovering it, and this one was not made to wait. Here it is worth the wait.
    await sessions.lock(sessionId).runExclusive(() => undefined)
    const recovered = await sessions.get(sessionId)
    if (recovered?.activeRunId !== runId || this.#busy.has(sessionId)) return recovered
    await sessions.cancelRun(sessionId, runId).catch((error: unknown) => {
      logger.warn({ err: error, sessionId, runId }, 'an answer that was left open could not be ended now')
    })
    return recovered
  }

  /** Resolves as soon as the words of the user are saved; the answer is followed with `follow`. */
  start(sessionId: string, text: string): Promise<{ runId: string }> {
    return this.#changing(sessionId, (session) => this.#begin(session, text))
  }

  /** Ends a run; what was said so far stays, marked as partial. */
  async cancel(sessionId: string, runId: string): Promise<void> {
    const working = this.#working(sessionId, runId)
    if (working === undefined) throw notFound('running answer')
    working.abort.abort()
    await working.done
  }

  /** A new chat is a boundary for this one. If an answer is still being written, the boundary comes behind it. */
  leave(sessionId: string, nextId: string): void {
    const { lifecycle, logger } = this.#parts
    const working = this.#busy.get(sessionId)
    if (working === undefined || working === 'changing') {
      lifecycle.switchSession(sessionId, nextId)
      return
    }
    working.done
      .then(() => lifecycle.switchSession(sessionId, nextId))
      .catch((error: unknown) => logger.debug({ err: error, sessionId }, 'left at shutdown: drained instead'))
  }

  undo(sessionId: string): Promise<Undone> {
    return this.#changing(sessionId, (session) => this.#undo(session))
  }

  retry(sessionId: string): Promise<Undone & { runId: string }> {
    return this.#changing(sessionId, async (session) => {
      const undone = await this.#undo(session)
      return { ...undone, ...(await this.#begin(session, undone.text)) }
    })
  }

  isRunning(sessionId: string, runId: string): boolean {
    return this.#working(sessionId, runId) !== undefined
  }

  /** The events of a run behind a cursor, until it ends; of a run that has ended, what its journal holds. */
  follow(sessionId: string, runId: string, after: number, signal: AbortSignal): AsyncGenerator<JournalEvent, void> {
    const live = this.#working(sessionId, runId)?.live
    return followRun(this.#parts.journal, { sessionId, runId, live }, { after, signal })
  }

  /** Resolves when no turn is running. */
  async idle(): Promise<void> {
    while (this.#running().length > 0) await Promise.all(this.#running().map(({ done }) => done))
  }

  /**
   * Stops what still runs, because the process has to end. Neither completed nor cancelled: the next start finds it in
   * the journal and shows it as interrupted.
   */
  async interrupt(): Promise<void> {
    for (const { abort } of this.#running()) abort.abort(SHUTDOWN)
    await this.idle()
  }

  /** Takes up what an earlier process left: interrupted answers, and a turn that was saved but not marked. */
  async recover(signal: AbortSignal): Promise<void> {
    const { sessions, lifecycle, memory, logger } = this.#parts
    for (const { id } of await sessions.list()) {
      if (signal.aborted) return
      const session = await sessions.get(id)
      if (session === undefined || this.#busy.has(id)) continue
      if (await markMissing(lifecycle, memory.agent(id), session)) {
        logger.info({ sessionId: id }, 'a turn that was saved and not marked has been marked')
      }
    }
  }

  #running(): Working[] {
    return [...this.#busy.values()].filter((busy) => busy !== 'changing')
  }

  #working(sessionId: string, runId: string): Working | undefined {
    const working = this.#busy.get(sessionId)
    return working !== undefined && working !== 'changing' && working.runId === runId ? working : undefined
  }

  async #begin(session: Session, text: string): Promise<{ runId: string }> {
    const { sessions } = this.#parts
    const { id } = session
    const runId = randomUUID()
    if (session.title === '') await sessions.update(id, (live) => void (live.title = titleOf(text)), { index: false })
    await sessions.beginTurn(id, { text, runId })
    const working: Working = { runId, live: new LiveRun(), abort: new AbortController(), done: Promise.resolve() }
    this.#busy.set(id, working)
    working.done = this.#perform(id, text, working)
    return { runId }
  }

  async #perform(sessionId: string, text: string, { runId, live, abort }: Working): Promise<void> {
    const { pool, sessions, logger } = this.#parts
    const run = new Run(this.#parts, { sessionId, runId, text, live, signal: abort.signal })
    try {
      // The pool keeps the agent open while the turn runs.
      await pool.use(sessionId, (agent) => run.perform(agent))
    } catch (error) {
      try {
        if (abort.signal.reason === SHUTDOWN) await run.interrupt()
        else if (abort.signal.aborted) await sessions.cancelRun(sessionId, runId)
        else {
          logger.warn({ err: error, sessionId, runId }, 'an answer failed')
          await run.fail(error instanceof ModelError ? error.message : 'something went wrong in the gateway')
        }
      } catch (failure) {
        // The journal has what was said. It is ended when somebody reads the chat, or recovered at the next start.
        logger.error({ err: failure, sessionId, runId }, 'a turn could not be ended')
      }
    } finally {
      this.#busy.delete(sessionId)
      live.end()
    }
  }

  /** Memory first: if the process dies in between, the turn can be undone again; the other way round it would be learned. */
  async #undo(session: Session): Promise<Undone> {
    const { sessions, lifecycle } = this.#parts
    const { id, messages } = session
    const start = messages.findLastIndex(({ role }) => role === 'user')
    if (start === -1) throw new RequestError(409, 'NOTHING_TO_UNDO', 'This chat has no turn that could be undone.')
    const mark = messages
      .slice(start)
      .map(turnMarkOf)
      .find((found) => found !== undefined)
    const withdrawn =
      mark === undefined ? { retracted: 0, offered: 0 } : await lifecycle.retractTurns(id, mark.generation)
    const { text } = await sessions.retryLast(id)
    // A chat is called after its first turn.
    if (start === 0) await sessions.update(id, (live) => void (live.title = ''))
    return { text, ...withdrawn }
  }

  async #changing<T>(sessionId: string, change: (session: Session) => Promise<T>): Promise<T> {
    if (this.#busy.has(sessionId)) {
      throw new RequestError(409, 'BUSY', 'An answer is running in this chat. Wait for it, or cancel it.')
    }
    this.#busy.set(sessionId, 'changing')
    try {
      const session = await this.read(sessionId)
      if (session === undefined) throw notFound('chat')
      // No run works here now: this one could not be ended when it was over, for instance because the disk was full.
      if (session.activeRunId !== null) await this.#parts.sessions.cancelRun(sessionId, session.activeRunId)
      return await change(session)
    } finally {
      // A run that was begun meanwhile keeps its place.
      if (this.#busy.get(sessionId) === 'changing') this.#busy.delete(sessionId)
    }
  }
}

function titleOf(text: string): string {
  const line = text.trim().replace(/\s+/gu, ' ')
  if (line.length <= LONGEST_TITLE) return line
  // Not in the middle of a pair of surrogates.
  return `${line
    .slice(0, LONGEST_TITLE)
    .replace(/[\uD800-\uDBFF]$/, '')
    .trimEnd()}…`
}
