/**
 * One lock a session, shared by append and Phase 1; who still waits after `waitMs` is told that the path is busy
 * (`session.py:78,1252-1255,1900-1903`).
 */
export class SessionLocks {
  waitMs = 30_000
  readonly #queues = new Map<string, (() => void)[]>()

  /** Resolves with the function that releases, or with `undefined` after the wait. */
  acquire(key: string, waitMs = this.waitMs): Promise<(() => void) | undefined> {
    const queue = this.#queues.get(key)
    if (queue === undefined) {
      this.#queues.set(key, [])
      return Promise.resolve(this.#releaser(key))
    }
    return new Promise((resolve) => {
      const granted = (): void => {
        clearTimeout(timer)
        resolve(this.#releaser(key))
      }
      const timer = setTimeout(() => {
        queue.splice(queue.indexOf(granted), 1)
        resolve(undefined)
      }, waitMs)
      queue.push(granted)
    })
  }

  #releaser(key: string): () => void {
    let released = false
    return () => {
      if (released) return
      released = true
      const next = this.#queues.get(key)?.shift()
      if (next === undefined) this.#queues.delete(key)
      else next()
    }
  }
}
