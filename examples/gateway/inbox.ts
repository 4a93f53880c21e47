/** What came since the last look; `behind`: more than fits came, and it was let go; nothing: it is over. */
export type Arrived<T> = readonly T[] | 'behind' | undefined

/** Carries events from whoever makes them to one reader that takes its time. Bounded: a slow reader costs no memory. */
export class Inbox<T> {
  readonly #limit: number
  #waiting: T[] = []
  #isBehind = false
  #isOver = false
  #wake = (): void => undefined

  constructor({ limit, signal }: { readonly limit: number; readonly signal: AbortSignal }) {
    this.#limit = limit
    if (signal.aborted) this.end()
    else signal.addEventListener('abort', () => this.end(), { once: true })
  }

  put(event: T): void {
    if (this.#waiting.length < this.#limit) this.#waiting.push(event)
    else {
      this.#waiting = []
      this.#isBehind = true
    }
    this.#wake()
  }

  end(): void {
    this.#isOver = true
    this.#wake()
  }

  async take(): Promise<Arrived<T>> {
    // Nothing may be awaited between this look and the promise: whoever wakes us would wake nobody.
    if (this.#waiting.length === 0 && !this.#isBehind && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    if (this.#isBehind) {
      this.#isBehind = false
      this.#waiting = []
      return 'behind'
    }
    const events = this.#waiting
    this.#waiting = []
    return events.length === 0 ? undefined : events
  }
}
