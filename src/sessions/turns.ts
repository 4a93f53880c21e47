import { randomUUID } from 'node:crypto'
import { TidemarkError } from '../base/errors.js'
import { assertId } from '../log/file-name.js'
import type { Loaded } from './loaded-sessions.js'
import type { StoreSettings } from './options.js'
import { hasPendingTurn, type Recoverer } from './recovery.js'
import { interruptTurn } from './recovery-plan.js'
import { remember, rememberLength } from './remember.js'
import { outputOf } from './run-output.js'
import type { Saver } from './saver.js'
import type { SessionLocks } from './session-locks.js'
import { clearPending, placeOutput, placePendingMessage } from './transcript.js'
import type { Message, Session, ToolCall, TurnOutcome } from './types.js'

export interface BeginTurn {
  readonly text: string
  /** @default a new one */
  readonly runId?: string
  readonly attachments?: readonly unknown[]
  readonly fsync?: boolean
}

/** A message of an answer; without a time it gets the time of the end. */
export type AnswerMessage = Omit<Message, 'timestamp'> & { readonly timestamp?: number }

export interface EndTurn {
  /** Tool calls of the answer; their `messageIndex` counts from the first given message. */
  readonly toolCalls?: readonly ToolCall[]
  readonly fsync?: boolean
}

export interface TurnsOptions {
  readonly settings: StoreSettings
  readonly locks: SessionLocks
  readonly recoverer: Recoverer
  readonly require: (id: string) => Promise<Loaded>
  readonly saver: Saver
  readonly stopCheckpointers: (id: string) => Promise<void>
}

/**
 * How many finished runs may wait for a durable save until one is made for them: every save writes their names, and
 * their journals cannot go before it.
 */
const MOST_UNMARKED = 16

/** Begin, end and cancel of a turn. A run is alive from its begin until one of the other two. */
export class Turns {
  readonly #options: TurnsOptions
  /** Runs begun through this store, by session and run: two sessions may use the same run id. */
  readonly #alive = new Set<string>()
  /** Where running runs went whose session got a new id. */
  readonly #followed = new Map<string, string>()

  constructor(options: TurnsOptions) {
    this.#options = options
  }

  async isAlive(sessionId: string, runId: string): Promise<boolean> {
    return this.isBegun(sessionId, runId) || (await this.#options.settings.isRunAlive(sessionId, runId))
  }

  isBegun(sessionId: string, runId: string): boolean {
    return this.#alive.has(keyOf(sessionId, runId))
  }

  /** The session of a running run got a new id. */
  follow(runId: string, oldId: string, newId: string): void {
    if (!this.#alive.delete(keyOf(oldId, runId))) return
    this.#alive.add(keyOf(newId, runId))
    this.#followed.set(keyOf(oldId, runId), newId)
  }

  /** The run is over, or its session is gone. */
  forget(sessionId: string, runId: string): void {
    this.#alive.delete(keyOf(sessionId, runId))
    for (const [old, id] of this.#followed) {
      if (id !== sessionId || !old.endsWith(`/${runId}`)) continue
      this.#followed.delete(old)
      this.forget(old.slice(0, old.indexOf('/')), runId)
    }
  }

  async begin(id: string, turn: BeginTurn): Promise<{ runId: string }> {
    const { text, runId = randomUUID(), attachments = [], fsync = false } = turn
    assertId(id, 'the session id')
    assertId(runId, 'the run id')
    if (typeof text !== 'string') throw new TypeError(`Expected text to be a string, found ${typeof text}.`)
    return this.#options.locks.run(id, async () => {
      const loaded = await this.#options.require(id)
      const { session } = loaded
      const { finishedRuns } = loaded.file
      // A run that works may change the session while it is asked for, so nothing is remembered before.
      await this.#refuseAlive(session)
      const putBack = hasPendingTurn(session) ? remember(session) : rememberLength(session)
      try {
        await this.#endPendingTurn(loaded)
        session.pendingUserMessage = text
        session.pendingAttachments = [...attachments]
        session.pendingStartedAt = this.#options.settings.clock.now()
        session.pendingFrom = session.messages.length
        session.activeRunId = runId
        await this.#options.saver.save(loaded, { fsync })
      } catch (error) {
        putBack()
        loaded.file.finishedRuns = finishedRuns
        throw error
      }
      // Nobody can ask in between: the lock is held, and a read that finds it taken recovers nothing.
      this.#alive.add(keyOf(id, runId))
      return { runId }
    })
  }

  async end(id: string, runId: string, messages: readonly AnswerMessage[], options: EndTurn): Promise<TurnOutcome> {
    return this.#finish(id, runId, async (loaded) => {
      const { session } = loaded
      const putBack = rememberLength(session)
      const now = this.#options.settings.clock.now()
      const answer = withoutUserMessage(session, messages)
      placePendingMessage(session)
      const start = session.messages.length
      for (const message of answer) session.messages.push({ ...message, timestamp: message.timestamp ?? now })
      const skipped = messages.length - answer.length
      for (const call of options.toolCalls ?? []) {
        session.toolCalls.push({ ...call, messageIndex: Math.max(start + call.messageIndex - skipped, 0) })
      }
      clearPending(session)
      await this.#saveFinished(loaded, runId, 'done', options.fsync === true, putBack)
      return { status: 'ended', sessionId: session.id }
    })
  }

  async cancel(id: string, runId: string): Promise<TurnOutcome> {
    return this.#finish(id, runId, async (loaded) => {
      const { session } = loaded
      const { view, isReadable } = await this.#options.recoverer.view(session, runId)
      const putBack = remember(session)
      if (isReadable) {
        const userIndex = placePendingMessage(session)
        if (view !== undefined) placeOutput(session, userIndex, outputOf(runId, view.events, { partial: true }))
        clearPending(session)
      } else {
        // What was put out cannot be read now: a marker keeps its place, and a later read brings it.
        interruptTurn(session, view, this.#options.settings.clock.now())
      }
      await this.#saveFinished(loaded, runId, 'cancel', false, putBack)
      return { status: 'cancelled', sessionId: session.id }
    })
  }

  /** Stops the checkpointer first: it waits for its write, which may wait for the lock. */
  async #finish(id: string, runId: string, work: (loaded: Loaded) => Promise<TurnOutcome>): Promise<TurnOutcome> {
    assertId(id, 'the session id')
    assertId(runId, 'the run id')
    const { locks, require, stopCheckpointers } = this.#options
    const before = await require(this.#placeOf(id, runId))
    if (before.session.activeRunId !== runId) return { status: 'moved', activeRunId: before.session.activeRunId }
    await stopCheckpointers(before.session.id)
    return locks.run(before.session.id, async () => {
      // It may have been rotated while this waited; both ids have the same lock then.
      const loaded = await require(this.#placeOf(id, runId))
      if (loaded.session.activeRunId !== runId) return { status: 'moved', activeRunId: loaded.session.activeRunId }
      return work(loaded)
    })
  }

  #placeOf(id: string, runId: string): string {
    const next = this.#followed.get(keyOf(id, runId))
    return next === undefined ? id : this.#placeOf(next, runId)
  }

  async #saveFinished(
    loaded: Loaded,
    runId: string,
    event: 'done' | 'cancel',
    fsync: boolean,
    putBack: () => void,
  ): Promise<void> {
    const { saver, settings } = this.#options
    const { session, file } = loaded
    const isHeld = !session.recoveries.some((recovery) => recovery.runId === runId)
    if (settings.journal !== undefined && isHeld) file.finishedRuns = [...file.finishedRuns, runId]
    const { finishedRuns } = file
    const durable = fsync || finishedRuns.length >= MOST_UNMARKED
    try {
      await saver.write(loaded, { fsync: durable, truncate: true })
    } catch (error) {
      file.finishedRuns = file.finishedRuns.filter((each) => each !== runId)
      putBack()
      throw error
    }
    this.forget(session.id, runId)
    await this.#journal(session.id, runId, event)
    // Last, because only a journal that exists can be marked, and this run's may begin with its end.
    if (durable) await saver.markSaved(loaded, finishedRuns)
  }

  /** The transcript has the turn; a journal that cannot say so as well is only logged. */
  async #journal(sessionId: string, runId: string, event: 'done' | 'cancel'): Promise<void> {
    const { journal, logger } = this.#options.settings
    try {
      await journal?.append(sessionId, runId, event, {})
    } catch (error) {
      logger.error({ err: error, sessionId, runId, event }, 'the end of a run could not be journaled')
    }
  }

  async #refuseAlive({ id, activeRunId }: Session): Promise<void> {
    if (activeRunId === null || !(await this.isAlive(id, activeRunId))) return
    throw new TidemarkError(
      'RUN_ALIVE',
      `Session ${id} has a turn that still runs (${activeRunId}). End or cancel it before the next one begins.`,
      { details: { id, runId: activeRunId } },
    )
  }

  async #endPendingTurn({ session, file }: Loaded): Promise<void> {
    if (!hasPendingTurn(session)) return
    const { finishedRuns } = await this.#options.recoverer.recover(session, { ignoreGrace: true })
    file.finishedRuns = [...file.finishedRuns, ...finishedRuns]
  }
}

const keyOf = (sessionId: string, runId: string): string => `${sessionId}/${runId}`

/** A host may hand over the whole turn: the user's message is put in place from what is pending. */
function withoutUserMessage(session: Session, messages: readonly AnswerMessage[]): readonly AnswerMessage[] {
  const [first] = messages
  const repeated = first?.role === 'user' && first.content === session.pendingUserMessage
  return repeated ? messages.slice(1) : messages
}
