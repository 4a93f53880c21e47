/** Turns that are being served: an agent is not closed under them (B5). */
export class Holds {
  readonly #held = new Map<string, { count: number; readonly waiters: (() => void)[] }>()

  /** Counts one more turn; the returned function ends it, once, and then calls `onReleased`. */
  hold(sessionId: string, onReleased: () => void): () => void {
    const held = this.#held.get(sessionId) ?? { count: 0, waiters: [] }
    this.#held.set(sessionId, held)
    held.count += 1
    let isReleased = false
    return () => {
      if (isReleased) return
      isReleased = true
      held.count -= 1
      if (held.count === 0) {
        this.#held.delete(sessionId)
        for (const wake of held.waiters) wake()
      }
      onReleased()
    }
  }

  isHeld(sessionId: string): boolean {
    return this.#held.has(sessionId)
  }

  /** Resolves when no turn of the session is being served. */
  async untilFree(sessionId: string): Promise<void> {
    for (let held = this.#held.get(sessionId); held !== undefined; held = this.#held.get(sessionId)) {
      const { waiters } = held
      await new Promise<void>((resolve) => waiters.push(resolve))
    }
  }
}
