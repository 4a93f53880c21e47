import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { TidemarkError } from '../base/errors.js'
import type { Logger } from '../base/logger.js'
import { AppendLog } from '../log/append-log.js'
import { fileOfId, idOfFile } from '../log/file-name.js'
import { isMissing, type OpenLogFile } from '../log/files.js'
import { serialiseFields } from '../log/line.js'
import type { OpenFiles } from '../log/open-files.js'
import { readPrefix } from '../log/scan.js'
import { readSession } from './session-file.js'
import type { Session, SessionEntry } from './types.js'

export const INDEX_FORMAT = Object.freeze({ format: 'tidemark-session-index', version: 1 })

/** Every save waits while the index is written anew, so that is done rarely: this much is read in a few milliseconds. */
const SMALL_FILE = 1024 * 1024

export interface SessionIndexOptions {
  readonly path: string
  readonly sessionsDirectory: string
  readonly files: OpenFiles
  readonly logger: Logger
  readonly openFile: OpenLogFile | undefined
}

/**
 * Title, time and size of every session. It only repeats what the session files say, so nothing depends on it: an
 * entry that is missing is read from its file, an index that is damaged is written anew.
 */
export class SessionIndex {
  readonly #options: SessionIndexOptions
  readonly #log: AppendLog
  readonly #entries: Map<string, SessionEntry>
  /** Sessions that have a file and no entry. */
  readonly #unlisted: Set<string>
  #mustReplace: boolean
  #failuresSeen = 0
  /** The size at which the file is written anew: half of it is dead then, at least. */
  #compactAt: number

  private constructor(
    options: SessionIndexOptions,
    read: Awaited<ReturnType<typeof readIndex>>,
    ids: readonly string[],
  ) {
    this.#options = options
    const files = new Set(ids)
    this.#entries = new Map(read.entries.filter(({ id }) => files.has(id)).map((entry) => [entry.id, entry]))
    this.#unlisted = new Set(ids.filter((id) => !this.#entries.has(id)))
    this.#mustReplace = read.damaged
    this.#compactAt = compactionSize(read.liveBytes)
    this.#log = new AppendLog({
      path: options.path,
      header: INDEX_FORMAT,
      position: read.position,
      files: options.files,
      ...(options.openFile === undefined ? {} : { openFile: options.openFile }),
    })
  }

  static async open(options: SessionIndexOptions): Promise<SessionIndex> {
    const read = await readIndex(options.path)
    if (read.damaged) options.logger.warn({ path: options.path }, 'the session index is damaged; it is rebuilt')
    const ids = (await readdir(options.sessionsDirectory)).map(idOfFile).filter((id) => id !== undefined)
    return new SessionIndex(options, read, ids)
  }

  /** Every session, newest first. Entries that are missing are read from their files; nothing is written. */
  async list(): Promise<SessionEntry[]> {
    for (const id of [...this.#unlisted]) {
      try {
        const read = await readSession(id, join(this.#options.sessionsDirectory, fileOfId(id)))
        if (read !== undefined && this.#unlisted.has(id)) this.#entries.set(id, entryOf(read.session))
      } catch (error) {
        this.#options.logger.error({ err: error, sessionId: id }, 'a session cannot be read; it is not listed')
        // What the disk refused now it may give to the next who asks; a file of another version stays one.
        if (!(error instanceof TidemarkError)) continue
      }
      this.#unlisted.delete(id)
    }
    return [...this.#entries.values()].sort((a, b) => b.updatedAt - a.updatedAt)
  }

  has(id: string): boolean {
    return this.#entries.has(id) || this.#unlisted.has(id)
  }

  /** What was read from a session's file is newer than its entry, for instance after a crash. */
  correct(session: Session): void {
    const known = this.#entries.get(session.id)
    if (known !== undefined && known.messageCount > session.messages.length) {
      const counts = { listed: known.messageCount, found: session.messages.length }
      this.#options.logger.warn({ sessionId: session.id, ...counts }, 'a session has fewer messages than were listed')
    }
    if (this.has(session.id)) this.#remember(session)
  }

  async put(session: Session): Promise<void> {
    const entry = this.#remember(session)
    await this.#write({ ...entry })
  }

  async remove(id: string): Promise<void> {
    this.#unlisted.delete(id)
    if (this.#entries.delete(id)) await this.#write({ id, gone: true })
  }

  async sync(): Promise<void> {
    if (this.#log.exists) await this.#log.sync()
  }

  close(): Promise<void> {
    return this.#log.close()
  }

  #remember(session: Session): SessionEntry {
    const entry = entryOf(session)
    this.#entries.set(session.id, entry)
    this.#unlisted.delete(session.id)
    return entry
  }

  async #write(record: object): Promise<void> {
    const mustReplace = this.#mustReplace || this.#failuresSeen !== this.#log.failures
    if (!mustReplace && this.#log.size < this.#compactAt) {
      await this.#log.append(serialiseFields(record), false)
      return
    }
    this.#mustReplace = false
    this.#failuresSeen = this.#log.failures
    const records = [...this.#entries.values()].map((entry) => ({ fields: serialiseFields(entry) }))
    // Whoever writes meanwhile appends to the new file.
    this.#compactAt = Infinity
    try {
      await this.#log.replace(records, false)
    } finally {
      this.#compactAt = compactionSize(this.#log.size)
    }
  }
}

const compactionSize = (liveBytes: number): number => Math.max(SMALL_FILE, 2 * liveBytes)

function entryOf({ id, title, updatedAt, messages }: Session): SessionEntry {
  return { id, title, updatedAt, messageCount: messages.length }
}

async function readIndex(path: string) {
  let bytes: Buffer
  try {
    bytes = await readFile(path)
  } catch (error) {
    if (isMissing(error)) return { entries: [], liveBytes: 0, position: undefined, damaged: false }
    throw error
  }
  const prefix = readPrefix(bytes, INDEX_FORMAT, path)
  if (prefix.damagedLine !== undefined) return { entries: [], liveBytes: 0, position: prefix.position, damaged: true }
  const live = new Map<string, { entry: SessionEntry; bytes: number }>()
  for (const { record, bytes: length } of prefix.records) {
    const { id, title, updatedAt, messageCount, gone } = record as unknown as SessionEntry & { gone?: true }
    if (gone === true) live.delete(id)
    else live.set(id, { entry: { id, title, updatedAt, messageCount }, bytes: length })
  }
  const all = [...live.values()]
  const liveBytes = all.reduce((sum, each) => sum + each.bytes, 0)
  return { entries: all.map(({ entry }) => entry), liveBytes, position: prefix.position, damaged: false }
}
