import { join } from 'node:path'
import { TidemarkError } from '../base/errors.js'
import type { Logger } from '../base/logger.js'
import { fileOfId } from '../log/file-name.js'
import type { OpenLogFile } from '../log/files.js'
import type { OpenFiles } from '../log/open-files.js'
import { SessionFile } from './session-file.js'
import type { DamageReport, Session } from './types.js'

/** A session in memory, with the file it is saved to. */
export interface Loaded {
  readonly session: Session
  readonly file: SessionFile
}

export interface LoadedSessionsOptions {
  readonly sessionsDirectory: string
  readonly damagedDirectory: string
  readonly maxLoaded: number
  readonly files: OpenFiles
  readonly logger: Logger
  readonly openFile: OpenLogFile | undefined
  /** Runs, locks or checkpointers keep a session in memory, whatever the bound. */
  readonly isBusy: (session: Session) => boolean
  readonly onLoaded: (loaded: Loaded) => Promise<void>
  readonly onDamage: (damage: DamageReport) => void
  /** A session that nobody needs leaves memory: its file is to be closed. */
  readonly onEvict: (loaded: Loaded) => Promise<void>
}

/** How many candidates one new session looks at: bounded work, also when all are busy. */
const CANDIDATES = 8

/** The live object of each session: one an id, and a bounded number of those that could be read again. */
export class LoadedSessions {
  readonly #options: LoadedSessionsOptions
  /** In order of use. */
  readonly #loaded = new Map<string, Loaded>()
  readonly #loading = new Map<string, Promise<Loaded | undefined>>()
  /** Files that are still being put away or written by somebody else. */
  readonly #gates = new Map<string, Promise<void>>()
  #closed = false

  constructor(options: LoadedSessionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#loaded.size
  }

  all(): Loaded[] {
    return [...this.#loaded.values()]
  }

  /** Only what is in memory. */
  peek(id: string): Loaded | undefined {
    return this.#loaded.get(id)
  }

  /** The live object, from memory or from its file; all who ask meanwhile share one reading. */
  async get(id: string): Promise<Loaded | undefined> {
    const loaded = this.#loaded.get(id)
    if (loaded !== undefined) {
      this.#loaded.delete(id)
      this.#loaded.set(id, loaded)
      return loaded
    }
    return this.#loading.get(id) ?? this.#share(id)
  }

  /** Whoever has to read this session from its file waits until then, so that no two handles write one file. */
  gate(id: string, until: Promise<unknown>): void {
    const gate = until.then(
      () => undefined,
      () => undefined,
    )
    this.#gates.set(id, gate)
    void gate.then(() => {
      if (this.#gates.get(id) === gate) this.#gates.delete(id)
    })
  }

  put(loaded: Loaded): void {
    this.#loaded.set(loaded.session.id, loaded)
    if (this.#loaded.size > this.#options.maxLoaded) this.#evict(loaded)
  }

  forget(id: string): void {
    this.#loaded.delete(id)
  }

  fileOf(id: string): SessionFile {
    return SessionFile.fresh(id, this.#fileOptions(id))
  }

  pathOf(id: string): string {
    return join(this.#options.sessionsDirectory, fileOfId(id))
  }

  /** Nothing is read from now on. Waits for what is being read or put away, and gives what is in memory. */
  async close(): Promise<Loaded[]> {
    this.#closed = true
    await Promise.allSettled([...this.#loading.values(), ...this.#gates.values()])
    return this.all()
  }

  #share(id: string): Promise<Loaded | undefined> {
    const loading = this.#load(id).finally(() => this.#loading.delete(id))
    this.#loading.set(id, loading)
    return loading
  }

  async #load(id: string): Promise<Loaded | undefined> {
    await this.#gates.get(id)
    if (this.#closed) throw new TidemarkError('CLOSED', 'The session store is closed.')
    const read = await SessionFile.load(id, this.#fileOptions(id))
    if (read === undefined) return undefined
    const { session, file, damage } = read
    if (damage !== undefined) this.#options.onDamage(damage)
    const loaded = { session, file }
    await this.#options.onLoaded(loaded)
    // Somebody may have created it meanwhile: the object that is live stays the only one.
    const live = this.#loaded.get(id)
    if (live !== undefined) return live
    this.put(loaded)
    return loaded
  }

  /** Never the newest: whoever asked for it is about to use it. */
  #evict(newest: Loaded): void {
    let looked = 0
    for (const [id, loaded] of this.#loaded) {
      if (this.#loaded.size <= this.#options.maxLoaded || ++looked > CANDIDATES) return
      if (loaded === newest || this.#isNeeded(loaded)) {
        this.#loaded.delete(id)
        this.#loaded.set(id, loaded)
        continue
      }
      this.#loaded.delete(id)
      this.gate(id, this.#putAway(id, loaded))
    }
  }

  async #putAway(id: string, loaded: Loaded): Promise<void> {
    try {
      await this.#options.onEvict(loaded)
    } catch (error) {
      this.#options.logger.error({ err: error, sessionId: id }, 'a session could not be put away')
    }
  }

  #isNeeded({ session, file }: Loaded): boolean {
    if (file.busy || this.#options.isBusy(session)) return true
    try {
      return file.hasChanges(session)
    } catch {
      // It cannot even be serialised, so it cannot be saved: its owner has to see to it, and no other reader.
      return true
    }
  }

  #fileOptions(id: string) {
    const { damagedDirectory, files, openFile } = this.#options
    return { path: this.pathOf(id), damagedDirectory, files, openFile }
  }
}
