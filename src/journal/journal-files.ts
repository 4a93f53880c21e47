import { open, readdir, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { fileOfId, idOfFile, idOfName, nameOfId } from '../log/file-name.js'
import { fileExists, ifExists, isMissing, makeDirectory, syncDirectory } from '../log/files.js'
import type { LogRecord } from '../log/line.js'
import { checkHeader, readLinesAfter, type Line } from '../log/scan.js'
import { isEventName } from './run-state.js'
import type { JournalEvent } from './types.js'

export const JOURNAL_FORMAT = Object.freeze({ format: 'tidemark-journal', version: 1 })

/** The journal files under one directory: `<session>/<run>.jsonl`, and `<run>.saved` once the store has the run. */
export class JournalFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  folder(sessionId: string): string {
    return join(this.#directory, nameOfId(sessionId))
  }

  path(sessionId: string, runId: string): string {
    return join(this.folder(sessionId), fileOfId(runId))
  }

  async prepareFolder(sessionId: string): Promise<void> {
    await makeDirectory(this.folder(sessionId))
  }

  has(sessionId: string, runId: string): Promise<boolean> {
    return fileExists(this.path(sessionId, runId))
  }

  async move(from: string, to: string, runId: string): Promise<void> {
    await this.prepareFolder(to)
    try {
      await rename(this.path(from, runId), this.path(to, runId))
    } catch (error) {
      if (isMissing(error)) return
      throw error
    }
    await syncDirectory(this.folder(to))
    await syncDirectory(this.folder(from))
  }

  async remove(sessionId: string, runId: string | undefined): Promise<void> {
    const folder = this.folder(sessionId)
    if (runId === undefined) {
      // Whoever still appends may put a file into it meanwhile.
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
      await syncDirectory(this.#directory)
      return
    }
    // The journal goes first: a mark without a journal says nothing, a journal without its mark stays for ever.
    await rm(this.path(sessionId, runId), { force: true })
    await rm(this.#savedMark(sessionId, runId), { force: true })
  }

  async markSaved(sessionId: string, runId: string): Promise<void> {
    if (!(await this.has(sessionId, runId))) return
    await writeFile(this.#savedMark(sessionId, runId), '', { mode: 0o600 })
  }

  /** Every journal that the store has recorded as saved, and how many bytes all journals take together. */
  async survey(): Promise<{ saved: SavedJournal[]; totalBytes: number }> {
    const saved: SavedJournal[] = []
    let totalBytes = 0
    for (const folder of await readdir(this.#directory, { withFileTypes: true })) {
      const sessionId = idOfName(folder.name)
      if (sessionId === undefined || !folder.isDirectory()) continue
      // Sessions and runs may be deleted while this looks.
      const names = new Set(await ifExists(readdir(this.folder(sessionId))))
      for (const name of names) {
        const runId = idOfFile(name)
        if (runId === undefined) continue
        const found = await ifExists(stat(this.path(sessionId, runId)))
        if (found === undefined) continue
        totalBytes += found.size
        if (names.has(savedName(runId))) {
          saved.push({ sessionId, runId, bytes: found.size, changedAt: found.mtimeMs })
        }
      }
    }
    return { saved, totalBytes }
  }

  #savedMark(sessionId: string, runId: string): string {
    return join(this.folder(sessionId), savedName(runId))
  }
}

export interface SavedJournal {
  readonly sessionId: string
  readonly runId: string
  readonly bytes: number
  readonly changedAt: number
}

/** The lines of a journal from a cursor on; nothing if there is no such file. */
export async function* readJournal(path: string, after: number): AsyncGenerator<Line[]> {
  let handle: FileHandle
  try {
    handle = await open(path, 'r')
  } catch (error) {
    if (isMissing(error)) return
    throw error
  }
  try {
    let first = true
    for await (const lines of readLinesAfter(handle, after)) {
      // Behind a cursor the first line is no header, and then this passes.
      if (first) checkHeader(lines[0]?.record, JOURNAL_FORMAT, path)
      first = false
      yield lines
    }
  } finally {
    await handle.close()
  }
}

export function eventOf(record: LogRecord): JournalEvent | undefined {
  const { seq, event, payload, at } = record
  if (seq < 1 || !isEventName(event) || typeof payload !== 'object' || payload === null) return undefined
  return { seq, event, payload: payload as Record<string, unknown>, at: Number(at) }
}

const savedName = (runId: string): string => `${nameOfId(runId)}.saved`
