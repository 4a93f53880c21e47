import { dirname } from 'node:path'
import { TidemarkError } from '../base/errors.js'
import { openLogFile, putFile, syncDirectory, writeAll, type LogFile, type OpenLogFile } from './files.js'
import { encodeLine, serialiseFields } from './line.js'
import type { OpenFiles } from './open-files.js'

/** Where appending goes on in a file that exists. */
export interface LogPosition {
  /** Bytes up to and including the last whole line, or all of them where damaged lines are kept. */
  readonly size: number
  readonly lastSeq: number
  /** The file ends in the middle of a line, which has to be closed before the next one. */
  readonly torn: boolean
}

export interface AppendLogOptions {
  readonly path: string
  /** Fields of the first line: format, version and what else the file is about. */
  readonly header: object
  /** `undefined`: there is no such file yet. */
  readonly position: LogPosition | undefined
  readonly files: OpenFiles
  readonly openFile?: OpenLogFile
  /** Makes the names in the log's directory durable: a test makes the disk fail here. */
  readonly syncNames?: (directory: string) => Promise<void>
}

/** A record of a new file; without a number it follows the one before it. */
export interface NumberedFields {
  readonly fields: string
  readonly seq?: number
}

interface Append {
  readonly kind: 'append' | 'sync'
  readonly fields: string
  readonly durable: boolean
  readonly resolve: (seq: number) => void
  readonly reject: (error: unknown) => void
}

interface Replace {
  readonly kind: 'replace'
  readonly records: readonly NumberedFields[]
  readonly durable: boolean
  readonly resolve: (seq: number) => void
  readonly reject: (error: unknown) => void
}

/**
 * Appends numbered, checksummed lines to one file.
 *
 * Group commit without timers: while one write and its sync run, everything else queues; then one write and one sync
 * serve the whole queue. A *lazy* record is acknowledged once it is written (it survives the process), a *durable* one
 * once it is synced (it survives a power cut), together with everything before it.
 *
 * States: open → poisoned (a sync failed: what is on disk is unknown, and a second sync may lie) → open again, only
 * by `replace`, which writes a new file; any → closed.
 */
export class AppendLog {
  readonly #path: string
  readonly #header: string
  readonly #files: OpenFiles
  readonly #openFile: OpenLogFile
  readonly #syncNames: (directory: string) => Promise<void>
  #position: LogPosition | undefined
  #file: LogFile | undefined
  #queue: (Append | Replace)[] = []
  #draining: Promise<void> | undefined
  #poison: TidemarkError | undefined
  #closed = false
  #failures = 0
  #unsynced = true
  #directorySynced = false
  /** Bytes behind `#position` may have been written. */
  #hasHalfLine = false

  constructor(options: AppendLogOptions) {
    this.#path = options.path
    this.#header = serialiseFields(options.header)
    this.#position = options.position
    this.#files = options.files
    this.#openFile = options.openFile ?? openLogFile
    this.#syncNames = options.syncNames ?? syncDirectory
  }

  get busy(): boolean {
    return this.#draining !== undefined
  }

  get exists(): boolean {
    return this.#position !== undefined
  }

  get size(): number {
    return this.#position?.size ?? 0
  }

  get lastSeq(): number {
    return this.#position?.lastSeq ?? 0
  }

  /** Counts failed writes. Whoever appends differences compares it, to know that an earlier difference is missing. */
  get failures(): number {
    return this.#failures
  }

  get poisoned(): boolean {
    return this.#poison !== undefined
  }

  /** Everything that was appended is on stable storage. */
  get synced(): boolean {
    return !this.#unsynced && this.#directorySynced && this.#queue.length === 0
  }

  /** Appends the fields that `serialiseFields` gave; resolves with the sequence number of the record. */
  append(fields: string, durable: boolean): Promise<number> {
    return new Promise((resolve, reject) => this.#enqueue({ kind: 'append', fields, durable, resolve, reject }))
  }

  /** Resolves when everything appended so far is on stable storage. */
  sync(): Promise<number> {
    if (this.synced && !this.poisoned) return Promise.resolve(this.lastSeq)
    return new Promise((resolve, reject) => this.#enqueue({ kind: 'sync', fields: '', durable: true, resolve, reject }))
  }

  /**
   * Puts a new file with these records in place of the old one. An existing file is always replaced durably, whatever
   * `durable` says: an unsynced rename can leave neither the old nor the new one after a power cut.
   */
  replace(records: readonly NumberedFields[], durable: boolean): Promise<number> {
    return new Promise((resolve, reject) => this.#enqueue({ kind: 'replace', records, durable, resolve, reject }))
  }

  /** Closes the file handle; the next write opens it again. */
  async release(): Promise<void> {
    this.#files.forget(this)
    const file = this.#file
    this.#file = undefined
    try {
      await file?.close()
    } catch (error) {
      // A network file system tells only now that it could not write.
      throw this.#poisonWith('Closing', error)
    }
  }

  /** The same, as soon as everything that waits is written. */
  async rest(): Promise<void> {
    while (this.#draining !== undefined) await this.#draining
    await this.release()
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.rest()
  }

  #enqueue(item: Append | Replace): void {
    if (this.#closed) {
      item.reject(new TidemarkError('CLOSED', `The log ${this.#path} is closed.`))
      return
    }
    this.#queue.push(item)
    this.#draining ??= this.#drain()
  }

  async #drain(): Promise<void> {
    // `#draining` must be set before the first write, so nothing here may run before the caller returned.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#takeBatch()
      try {
        const first = batch[0]
        if (first?.kind === 'replace') await this.#performReplace(first)
        else await this.#performAppends(batch as Append[])
      } catch (error) {
        await this.#fail(batch, error)
      }
    }
    this.#draining = undefined
  }

  /** Everything up to the next replacement, or that replacement alone. */
  #takeBatch(): (Append | Replace)[] {
    const cut = this.#queue.findIndex((item) => item.kind === 'replace')
    if (cut === -1) return this.#queue.splice(0)
    return this.#queue.splice(0, Math.max(cut, 1))
  }

  async #performAppends(batch: Append[]): Promise<void> {
    if (this.#poison !== undefined) throw this.#poison
    const durable = batch.some((item) => item.durable)
    const before = this.#position
    let seq = before?.lastSeq ?? 0
    const numbers: number[] = []
    let text = before === undefined ? encodeLine(0, this.#header) : before.torn ? '\n' : ''
    for (const item of batch) {
      if (item.kind === 'append') text += encodeLine(++seq, item.fields)
      numbers.push(seq)
    }
    const bytes = Buffer.from(text)
    if (bytes.length > 0) this.#unsynced = true
    if (before === undefined) {
      await putFile(this.#path, bytes, { durable: false, openFile: this.#openFile })
    } else if (bytes.length > 0) {
      const file = await this.#handle()
      this.#hasHalfLine = true
      await writeAll(file, bytes, before.size)
    }
    this.#hasHalfLine = false
    this.#position = { size: (before?.size ?? 0) + bytes.length, lastSeq: seq, torn: false }
    batch.forEach((item, at) => {
      if (!item.durable) item.resolve(numbers[at] ?? seq)
    })
    if (!durable) return
    await this.#makeDurable()
    batch.forEach((item, at) => {
      if (item.durable) item.resolve(numbers[at] ?? seq)
    })
  }

  async #performReplace(item: Replace): Promise<void> {
    const durable = item.durable || this.#position !== undefined
    let lastSeq = 0
    let text = encodeLine(0, this.#header)
    for (const { fields, seq } of item.records) {
      lastSeq = seq ?? lastSeq + 1
      text += encodeLine(lastSeq, fields)
    }
    const bytes = Buffer.from(text)
    this.#unsynced = true
    await this.release()
    await putFile(this.#path, bytes, { durable, openFile: this.#openFile })
    // From here on the new file is the log, also if its name cannot be made durable.
    this.#position = { size: bytes.length, lastSeq, torn: false }
    this.#poison = undefined
    this.#unsynced = !durable
    this.#directorySynced = false
    if (durable) await this.#makeDurable()
    item.resolve(lastSeq)
  }

  async #makeDurable(): Promise<void> {
    try {
      if (this.#unsynced) await (await this.#handle()).datasync()
      if (!this.#directorySynced) await this.#syncNames(dirname(this.#path))
    } catch (error) {
      throw this.#poisonWith('Syncing', error)
    }
    this.#unsynced = false
    this.#directorySynced = true
  }

  /** Whoever queued behind a failed write built on it, so they fail together, in the same moment. */
  async #fail(batch: readonly (Append | Replace)[], error: unknown): Promise<void> {
    this.#failures += 1
    const failure =
      error instanceof TidemarkError
        ? error
        : new TidemarkError('WRITE_FAILED', `Writing ${this.#path} failed; nothing of this request was kept.`, {
            cause: error,
            details: { path: this.#path },
          })
    for (const item of [...batch, ...this.#queue.splice(0)]) item.reject(failure)
    if (this.#position === undefined || !this.#hasHalfLine) return
    this.#hasHalfLine = false
    try {
      await (await this.#handle()).truncate(this.#position.size)
    } catch {
      // The half-written line could not be taken back, so the next record cannot go where it stands.
      this.#poison = failure
    }
  }

  #poisonWith(step: 'Syncing' | 'Closing', cause: unknown): TidemarkError {
    this.#poison = new TidemarkError(
      'WRITE_FAILED',
      `${step} ${this.#path} failed, so what it holds is unknown. It takes no more records until it is written anew.`,
      { cause, details: { path: this.#path } },
    )
    return this.#poison
  }

  async #handle(): Promise<LogFile> {
    this.#file ??= await this.#openFile(this.#path, 'r+')
    await this.#files.use(this)
    return this.#file
  }
}
