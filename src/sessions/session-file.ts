import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { crc32 } from 'node:zlib'
import { TidemarkError } from '../base/errors.js'
import { AppendLog, type LogPosition } from '../log/append-log.js'
import { isMissing, type OpenLogFile } from '../log/files.js'
import type { LogRecord } from '../log/line.js'
import type { OpenFiles } from '../log/open-files.js'
import { readPrefix } from '../log/scan.js'
import { bytesOf, SavedState } from './saved-state.js'
import type { DamageReport, Message, Session, ToolCall } from './types.js'

export const SESSION_FORMAT = Object.freeze({ format: 'tidemark-session', version: 1 })

export interface SessionFileOptions {
  readonly path: string
  readonly damagedDirectory: string
  readonly files: OpenFiles
  readonly openFile: OpenLogFile | undefined
}

/** The file of one session: every save is one record with what changed. */
export class SessionFile {
  readonly #options: SessionFileOptions
  readonly #log: AppendLog
  readonly #state: SavedState
  /** The whole damaged file, until a copy of it is safe. */
  #uncopied: Buffer | undefined
  /** The file is not what `#state` says: it is damaged, or an earlier record is missing. */
  #mustReplace: boolean
  #failuresSeen = 0
  /** Runs that the transcript holds and whose journal does not know it yet. */
  finishedRuns: string[]

  private constructor(
    id: string,
    options: SessionFileOptions,
    loaded: { position: LogPosition | undefined; state: SavedState; finishedRuns: string[]; damaged: boolean },
  ) {
    this.#options = options
    this.#state = loaded.state
    this.#mustReplace = loaded.damaged || loaded.position === undefined
    this.finishedRuns = loaded.finishedRuns
    this.#log = new AppendLog({
      path: options.path,
      header: { ...SESSION_FORMAT, id },
      position: loaded.position,
      files: options.files,
      ...(options.openFile === undefined ? {} : { openFile: options.openFile }),
    })
  }

  static fresh(id: string, options: SessionFileOptions): SessionFile {
    return new SessionFile(id, options, {
      position: undefined,
      state: new SavedState(),
      finishedRuns: [],
      damaged: false,
    })
  }

  /** Reads a session up to the first damage; a damaged file is copied aside. */
  static async load(
    id: string,
    options: SessionFileOptions,
  ): Promise<{ session: Session; file: SessionFile; damage: DamageReport | undefined } | undefined> {
    const read = await readSession(id, options.path)
    if (read === undefined) return undefined
    const { session, bytes, damagedLine } = read
    const file = new SessionFile(id, options, {
      position: read.position,
      state: SavedState.ofLoaded(session, read.finishedRuns, read.messageBytes),
      finishedRuns: read.finishedRuns,
      damaged: damagedLine !== undefined,
    })
    if (damagedLine === undefined) return { session, file, damage: undefined }
    file.#uncopied = bytes
    let copy: string | undefined
    try {
      copy = file.#copyAside(bytes)
    } catch {
      // Reported as `copy: undefined`; every save tries again and is refused until it works.
    }
    const damage = { sessionId: id, path: options.path, copy, line: damagedLine, messagesKept: session.messages.length }
    return { session, file, damage }
  }

  get busy(): boolean {
    return this.#log.busy
  }

  get exists(): boolean {
    return this.#log.exists
  }

  /** Whether saving would write something. */
  hasChanges(session: Session): boolean {
    return this.#needsReplacing || this.#state.difference(session, this.finishedRuns).record !== undefined
  }

  isDurable(session: Session): boolean {
    return !this.hasChanges(session) && this.#log.synced
  }

  /**
   * Takes what changed since the last save, as the session is at this moment, and queues it. Everything that can be
   * refused is refused here, before any effect; the returned function tells when it is written.
   */
  save(session: Session, { durable, truncate }: { durable: boolean; truncate: boolean }): Promise<unknown> {
    if (session.messages.length < this.#state.messageCount && !truncate) {
      throw new TidemarkError(
        'SESSION_SHRUNK',
        `Session ${session.id} has ${session.messages.length} messages, but ${this.#state.messageCount} are saved. ` +
          'If messages are meant to go, save with { truncate: true }.',
        { details: { id: session.id, messages: session.messages.length, saved: this.#state.messageCount } },
      )
    }
    if (this.#uncopied !== undefined) this.#copyAside(this.#uncopied)
    if (!this.#needsReplacing) {
      const { record, accept } = this.#state.difference(session, this.finishedRuns)
      if (record === undefined) return durable ? this.#log.sync() : Promise.resolve()
      accept()
      if (!this.#state.isMostlyDead(this.#log.size + bytesOf(record))) return this.#log.append(record, durable)
    }
    const { records, accept } = this.#state.snapshot(session, this.finishedRuns)
    accept()
    this.#mustReplace = false
    this.#failuresSeen = this.#log.failures
    return this.#log.replace(
      records.map((fields) => ({ fields })),
      durable,
    )
  }

  sync(): Promise<unknown> {
    return this.#log.sync()
  }

  close(): Promise<void> {
    return this.#log.close()
  }

  get #needsReplacing(): boolean {
    return this.#mustReplace || this.#failuresSeen !== this.#log.failures
  }

  /** Named by its content, so that loading the same damage again makes no second copy. */
  #copyAside(bytes: Buffer): string {
    const { damagedDirectory, path } = this.#options
    const name = `${basename(path, '.jsonl')}.${crc32(bytes).toString(16)}.jsonl`
    const copy = join(damagedDirectory, name)
    const temporary = `${copy}.tmp`
    try {
      mkdirSync(damagedDirectory, { recursive: true, mode: 0o700 })
      writeFileSync(temporary, bytes, { mode: 0o600, flush: true })
      renameSync(temporary, copy)
    } catch (error) {
      removeQuietly(temporary)
      throw new TidemarkError(
        'WRITE_FAILED',
        `The damaged file ${path} could not be copied to ${dirname(copy)}, so it is not overwritten. Make room there and save again.`,
        { cause: error, details: { path, copy } },
      )
    }
    this.#uncopied = undefined
    return copy
  }
}

/** After a failure that is reported anyway: the directory itself may be what is missing. */
function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true })
  } catch {
    return
  }
}

export interface ReadSession {
  readonly session: Session
  readonly bytes: Buffer
  readonly finishedRuns: string[]
  readonly messageBytes: number[]
  readonly position: LogPosition
  readonly damagedLine: number | undefined
}

/** Reads a session without touching anything. */
export async function readSession(id: string, path: string): Promise<ReadSession | undefined> {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
  const prefix = readPrefix(bytes, SESSION_FORMAT, path)
  const session = emptySession(id, 0)
  const messageBytes: number[] = []
  let finishedRuns: string[] = []
  for (const { record, bytes: length } of prefix.records) {
    const { messages, set } = applyRecord(session, record)
    if (set?.finishedRuns !== undefined) finishedRuns = set.finishedRuns
    messageBytes.length = session.messages.length - messages
    for (let added = 0; added < messages; added++) messageBytes.push(length / messages)
  }
  // A file is put in place whole, with as many records as its first one says: fewer were cut off.
  const expected = Number(prefix.records[0]?.record['records'] ?? 1)
  const isCut = prefix.records.length < expected
  const damagedLine = prefix.damagedLine ?? (isCut ? prefix.records.length + 2 : undefined)
  // Only damage can leave a tool call without its message.
  if (damagedLine !== undefined) {
    session.toolCalls = session.toolCalls.filter(({ messageIndex }) => messageIndex < session.messages.length)
  }
  return { session, bytes, finishedRuns, messageBytes, position: prefix.position, damagedLine }
}

interface SessionRecord {
  readonly keep?: number
  readonly messages?: readonly Message[]
  readonly keepCalls?: number
  readonly toolCalls?: readonly ToolCall[]
  readonly set?: Partial<Session> & { readonly finishedRuns?: string[] }
}

function applyRecord(session: Session, record: LogRecord): { messages: number; set: SessionRecord['set'] } {
  const { keep, messages = [], keepCalls, toolCalls = [], set } = record as SessionRecord
  if (keep !== undefined) session.messages.length = keep
  for (const message of messages) session.messages.push(message)
  if (keepCalls !== undefined) session.toolCalls.length = keepCalls
  for (const call of toolCalls) session.toolCalls.push(call)
  if (set !== undefined) {
    const { finishedRuns: _, ...fields } = set
    Object.assign(session, fields)
  }
  return { messages: messages.length, set }
}

export function emptySession(id: string, now: number): Session {
  return {
    id,
    title: '',
    createdAt: now,
    updatedAt: now,
    messages: [],
    toolCalls: [],
    metadata: {},
    pendingUserMessage: null,
    pendingAttachments: [],
    pendingStartedAt: null,
    pendingFrom: null,
    activeRunId: null,
    recoveries: [],
    rotatedFrom: null,
    rotatedTo: null,
  }
}
