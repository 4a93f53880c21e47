import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { TidemarkError } from '../base/errors.js'
import { acquireProcessLock, type ProcessLock } from '../base/process-lock.js'
import { assertId } from '../log/file-name.js'
import { makeDirectory, sweepTemporaryFiles, syncDirectory } from '../log/files.js'
import { OpenFiles } from '../log/open-files.js'
import { Checkpointer } from './checkpointer.js'
import { LoadedSessions, type Loaded } from './loaded-sessions.js'
import { settingsOf, type SessionStoreOptions, type StoreSettings } from './options.js'
import { Recoverer } from './recovery.js'
import { remember } from './remember.js'
import { finishRotation, rotateSession } from './rotation.js'
import { Saver } from './saver.js'
import { emptySession } from './session-file.js'
import { SessionIndex } from './session-index.js'
import { SessionLocks } from './session-locks.js'
import { removeLastTurn } from './transcript.js'
import { Turns, type AnswerMessage, type BeginTurn, type EndTurn } from './turns.js'
import type { DamageReport, FlushReport, Message, SaveOptions, Session, SessionEntry, TurnOutcome } from './types.js'

const CHECKPOINT_EVERY_MS = 5_000

/** Transcripts that survive: one file a session, an index over them, a lock around each. */
export class SessionStore {
  readonly #settings: StoreSettings
  readonly #processLock: ProcessLock
  readonly #index: SessionIndex
  readonly #sessions: LoadedSessions
  readonly #locks = new SessionLocks()
  readonly #checkpointers = new Set<Checkpointer>()
  readonly #recoverer: Recoverer
  readonly #turns: Turns
  readonly #saver: Saver
  #closing: Promise<void> | undefined

  private constructor(settings: StoreSettings, processLock: ProcessLock, index: SessionIndex, files: OpenFiles) {
    this.#settings = settings
    this.#processLock = processLock
    this.#index = index
    this.#saver = new Saver(settings, index)
    this.#sessions = new LoadedSessions({
      ...settings,
      files,
      sessionsDirectory: join(settings.directory, 'sessions'),
      damagedDirectory: join(settings.directory, 'damaged'),
      isBusy: (session) => this.#isBusy(session),
      onLoaded: (loaded) => this.#onLoaded(loaded),
      onDamage: (damage) => this.#onDamage(damage),
      onEvict: (loaded) => this.#saver.putAway(loaded),
    })
    this.#recoverer = new Recoverer({
      ...settings,
      limits: settings.recovery,
      isAlive: (sessionId, runId) => this.#turns.isAlive(sessionId, runId),
    })
    this.#turns = new Turns({
      settings,
      locks: this.#locks,
      recoverer: this.#recoverer,
      require: (id) => this.#require(id),
      saver: this.#saver,
      stopCheckpointers: (id) => this.#stopCheckpointers(id),
    })
  }

  /** Takes the directory for this process, sweeps what a crash left, and reads the index. */
  static async open(options: SessionStoreOptions): Promise<SessionStore> {
    const settings = settingsOf(options)
    const { directory, logger, openFile } = settings
    const sessionsDirectory = join(directory, 'sessions')
    await makeDirectory(directory)
    const processLock = await acquireProcessLock(join(directory, 'lock.sqlite'), `The session store ${directory}`)
    try {
      await makeDirectory(sessionsDirectory)
      await sweepTemporaryFiles(directory)
      await sweepTemporaryFiles(sessionsDirectory)
      const files = new OpenFiles()
      const path = join(directory, 'index.jsonl')
      const index = await SessionIndex.open({ path, sessionsDirectory, files, logger, openFile })
      return new SessionStore(settings, processLock, index, files)
    } catch (error) {
      await processLock.release()
      throw error
    }
  }

  /** Makes a session in memory; nothing is written before its first save. */
  async create(
    init: { readonly id?: string; readonly title?: string; readonly messages?: readonly Message[] } = {},
  ): Promise<Session> {
    this.#assertOpen()
    const { id = randomUUID(), title = '', messages = [] } = init
    assertId(id, 'the session id')
    // An id that was drawn here is nobody's, so the disk is not asked. The second look is in the same moment as the
    // making: of two who create at once, one is told.
    const isTaken = init.id !== undefined && (await this.#sessions.get(id)) !== undefined
    if (isTaken || this.#sessions.peek(id) !== undefined) {
      throw new TidemarkError('SESSION_EXISTS', `Session ${id} exists. Use get() or another id.`, { details: { id } })
    }
    return this.#make(id, title, messages)
  }

  /** The live object of a session; an interrupted turn is recovered first, as far as its journal shows. */
  async get(id: string): Promise<Session | undefined> {
    this.#assertOpen()
    assertId(id, 'the session id')
    const loaded = await this.#sessions.get(id)
    if (loaded === undefined) return undefined
    if (this.#mayRecover(loaded.session)) await this.#recover(id)
    return loaded.session
  }

  async getOrCreate(id: string): Promise<Session> {
    const session = await this.get(id)
    if (session !== undefined) return session
    // Another caller may have created it since: both get the same object.
    return this.#sessions.peek(id)?.session ?? this.#make(id, '', [])
  }

  /** Every session of the index, newest first. */
  async list(): Promise<SessionEntry[]> {
    this.#assertOpen()
    return this.#index.list()
  }

  /** Removes a session, its index entry and its journals. Gives whether there was one. */
  async delete(id: string): Promise<boolean> {
    this.#assertOpen()
    assertId(id, 'the session id')
    await this.#stopCheckpointers(id)
    return this.#locks.run(id, async () => {
      const loaded = await this.#sessions.get(id)
      if (loaded === undefined) return false
      this.#sessions.forget(id)
      if (loaded.session.activeRunId !== null) this.#turns.forget(id, loaded.session.activeRunId)
      const removed = (async () => {
        await loaded.file.close()
        await rm(this.#sessions.pathOf(id), { force: true })
        await syncDirectory(join(this.#settings.directory, 'sessions'))
      })()
      this.#sessions.gate(id, removed)
      await removed
      await this.#index.remove(id)
      await this.#settings.journal?.delete(id)
      return true
    })
  }

  /**
   * Writes what changed since the last save, as the session is at the moment of the call. Takes no lock, so it can be
   * called inside `update` and `lock().runExclusive`.
   */
  async save(session: Session, options: SaveOptions = {}): Promise<void> {
    this.#assertOpen()
    assertId(session.id, 'the session id')
    const loaded = this.#sessions.peek(session.id)
    if (loaded?.session !== session) {
      throw new TidemarkError(
        'SESSION_STALE',
        `This object is not the live one of session ${session.id}. Take the one that get() gives, and change that.`,
        { details: { id: session.id } },
      )
    }
    await this.#saver.save(loaded, options)
  }

  /** Stops every checkpointer and waits for the writes in progress: the second step of a shutdown. */
  async stopCheckpointers(): Promise<void> {
    await Promise.all([...this.#checkpointers].map((checkpointer) => checkpointer.stop()))
  }

  /** Saves every loaded session durably; goes on past one that fails. */
  async flushAll(): Promise<FlushReport> {
    this.#assertOpen()
    return this.#saver.flush(this.#sessions.all())
  }

  /** Read, change, save, under the session's lock. */
  async update(
    id: string,
    change: (session: Session) => void | Promise<void>,
    options: SaveOptions = {},
  ): Promise<Session> {
    this.#assertOpen()
    assertId(id, 'the session id')
    return this.#locks.run(id, async () => {
      const loaded = await this.#require(id)
      await change(loaded.session)
      await this.#saver.save(loaded, options)
      return loaded.session
    })
  }

  /** Saves the user's words and the run before the model is called. */
  async beginTurn(id: string, turn: BeginTurn): Promise<{ runId: string }> {
    this.#assertOpen()
    return this.#turns.begin(id, turn)
  }

  /** Puts the user's message and the answer into the transcript. Mark the turn completed only if this says `ended`. */
  async endTurn(
    id: string,
    runId: string,
    messages: readonly AnswerMessage[],
    options: EndTurn = {},
  ): Promise<TurnOutcome> {
    this.#assertOpen()
    return this.#turns.end(id, runId, messages, options)
  }

  /** Ends a run early: the user's message and what was journaled stay in the transcript. */
  async cancelRun(id: string, runId: string): Promise<TurnOutcome> {
    this.#assertOpen()
    return this.#turns.cancel(id, runId)
  }

  /** Removes the last user message and everything behind it. */
  async undoLast(id: string): Promise<void> {
    await this.retryLast(id)
  }

  /** As `undoLast`, and gives the removed text to be sent again. */
  async retryLast(id: string): Promise<{ text: string }> {
    this.#assertOpen()
    assertId(id, 'the session id')
    return this.#locks.run(id, async () => {
      const loaded = await this.#require(id)
      const putBack = remember(loaded.session)
      const text = removeLastTurn(loaded.session)
      try {
        await this.#saver.save(loaded, { truncate: true })
      } catch (error) {
        putBack()
        throw error
      }
      return { text }
    })
  }

  /** Gives a session a new id; the old one stays as a snapshot. Locks, checkpointers and a running run follow. */
  async rotate(oldId: string, newId: string): Promise<Session> {
    this.#assertOpen()
    assertId(oldId, 'the session id')
    assertId(newId, 'the new session id')
    const alias = this.#locks.alias(oldId, newId)
    try {
      const session = await this.#locks.run(oldId, () => this.#rotate(oldId, newId))
      alias.done()
      return session
    } catch (error) {
      alias.undo()
      throw error
    }
  }

  lock(id: string): { runExclusive<T>(work: () => T | Promise<T>): Promise<T> } {
    assertId(id, 'the session id')
    return { runExclusive: (work) => this.#locks.run(id, work) }
  }

  /** Saves a running session when there was activity, at most every `everyMs` (5 s). */
  checkpoint(id: string, { everyMs = CHECKPOINT_EVERY_MS }: { readonly everyMs?: number } = {}): Checkpointer {
    this.#assertOpen()
    assertId(id, 'the session id')
    if (!(everyMs >= 0)) throw new TypeError(`Expected everyMs to be at least 0, found ${everyMs}.`)
    const checkpointer = new Checkpointer(id, {
      ...this.#settings,
      everyMs,
      locks: this.#locks,
      save: async (sessionId) => this.#saver.save(await this.#require(sessionId), { index: false }),
      onStop: (stopped) => this.#checkpointers.delete(stopped),
    })
    this.#checkpointers.add(checkpointer)
    return checkpointer
  }

  /** Waits for writes in progress and gives the directory free. Saves nothing: call `flushAll` before. */
  close(): Promise<void> {
    this.#closing ??= this.#closeAll()
    return this.#closing
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #make(id: string, title: string, messages: readonly Message[]): Session {
    const session = emptySession(id, this.#settings.clock.now())
    session.title = title
    session.messages = [...messages]
    this.#sessions.put({ session, file: this.#sessions.fileOf(id) })
    return session
  }

  async #recover(id: string): Promise<void> {
    try {
      await this.#locks.run(id, async () => {
        const loaded = await this.#require(id)
        const { changed, finishedRuns } = await this.#recoverer.recover(loaded.session, { ignoreGrace: false })
        loaded.file.finishedRuns = [...loaded.file.finishedRuns, ...finishedRuns]
        if (changed) await this.#saver.save(loaded, { touch: false })
      })
    } catch (error) {
      this.#settings.logger.error({ err: error, sessionId: id }, 'an interrupted turn could not be recovered now')
    }
  }

  /** A read that finds the lock taken does not wait: somebody works on the session, perhaps this recovery. */
  #mayRecover(session: Session): boolean {
    if (!this.#recoverer.mayHaveWork(session) || this.#locks.isLocked(session.id)) return false
    const begun = session.activeRunId !== null && this.#turns.isBegun(session.id, session.activeRunId)
    return !begun || session.recoveries.length > 0
  }

  async #rotate(oldId: string, newId: string): Promise<Session> {
    const loaded = await this.#require(oldId)
    const { activeRunId } = loaded.session
    const { session } = await rotateSession(this.#sessions, loaded, newId)
    for (const checkpointer of this.#checkpointers) {
      if (checkpointer.sessionId === oldId) checkpointer.sessionId = newId
    }
    if (activeRunId !== null) {
      this.#turns.follow(activeRunId, oldId, newId)
      await this.#moveJournal(oldId, newId, activeRunId)
    }
    await this.#saver.putIndex(session)
    return session
  }

  /** A journal that stays behind is still found: recovery looks at the old id as well. */
  async #moveJournal(oldId: string, newId: string, runId: string): Promise<void> {
    try {
      await this.#settings.journal?.move(oldId, newId, runId)
    } catch (error) {
      this.#settings.logger.error({ err: error, sessionId: newId, runId }, 'a run journal could not follow its session')
    }
  }

  async #onLoaded({ session, file }: Loaded): Promise<void> {
    this.#index.correct(session)
    if (!(await finishRotation(this.#sessions, session))) return
    try {
      await file.save(session, { durable: true, truncate: true })
    } catch (error) {
      // It is right in memory, and every later load comes to the same conclusion.
      this.#settings.logger.error({ err: error, sessionId: session.id }, 'a rotation could not be completed on disk')
    }
  }

  #onDamage(damage: DamageReport): void {
    this.#settings.logger.error({ ...damage }, 'a transcript is damaged; what stands before the damage was kept')
    try {
      this.#settings.onDamage(damage)
    } catch (error) {
      this.#settings.logger.error({ err: error, sessionId: damage.sessionId }, 'onDamage failed')
    }
  }

  #isBusy(session: Session): boolean {
    const { id, activeRunId } = session
    if (this.#locks.isUsed(id)) return true
    if (activeRunId !== null && this.#turns.isBegun(id, activeRunId)) return true
    return [...this.#checkpointers].some(({ sessionId }) => sessionId === id)
  }

  async #require(id: string): Promise<Loaded> {
    const loaded = await this.#sessions.get(id)
    if (loaded !== undefined) return loaded
    throw new TidemarkError('NOT_FOUND', `There is no session ${id}. Create it first.`, { details: { id } })
  }

  async #stopCheckpointers(id: string): Promise<void> {
    const own = [...this.#checkpointers].filter(({ sessionId }) => sessionId === id)
    await Promise.all(own.map((checkpointer) => checkpointer.stop()))
  }

  async #closeAll(): Promise<void> {
    await this.stopCheckpointers()
    try {
      for (const loaded of await this.#sessions.close()) await this.#saver.putAway(loaded)
      await this.#index.close()
    } finally {
      await this.#processLock.release()
    }
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new TidemarkError('CLOSED', 'The session store is closed.')
  }
}
