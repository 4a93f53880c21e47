/** Something that holds a file open while it is used, and can open it again. */
export interface Releasable {
  /** Whether a write is under way or waits. */
  readonly busy: boolean
  release(): Promise<void>
}

/** Bounds how many files are open at once: the one that was used longest ago is released first. */
export class OpenFiles {
  readonly #limit: number
  /** In order of use: a Set keeps insertion order. */
  readonly #open = new Set<Releasable>()

  constructor(limit = 128) {
    this.#limit = limit
  }

  get count(): number {
    return this.#open.size
  }

  async use(file: Releasable): Promise<void> {
    this.#open.delete(file)
    this.#open.add(file)
    for (const other of this.#open) {
      // Those that were busy when they should have gone are released with the next one that is not.
      if (this.#open.size <= this.#limit) return
      if (other === file || other.busy) continue
      this.#open.delete(other)
      // Whose file fails when it is closed remembers it, and says so to its own next writer.
      await other.release().catch(() => undefined)
    }
  }

  forget(file: Releasable): void {
    this.#open.delete(file)
  }
}
