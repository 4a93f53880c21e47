import { AsyncLocalStorage } from 'node:async_hooks'
import { Mutex } from 'async-mutex'
import { TidemarkError } from '../base/errors.js'

interface Lock {
  readonly mutex: Mutex
  /** Its ids, each with how many hold it, wait for it or rename it under that id. Without any it is forgotten. */
  readonly users: Map<string, number>
  /** New ids of rotations that failed: each goes when nobody uses it. */
  readonly retired: Set<string>
}

/** A critical section that is still open, and those around it. */
interface Section {
  readonly lock: Lock
  open: boolean
  readonly outer: Section | undefined
}

/** One lock a session id. Two ids share a lock while one is being rotated into the other and anybody uses it. */
export class SessionLocks {
  readonly #locks = new Map<string, Lock>()
  readonly #sections = new AsyncLocalStorage<Section | undefined>()

  get size(): number {
    return this.#locks.size
  }

  isLocked(id: string): boolean {
    return this.#locks.get(id)?.mutex.isLocked() === true
  }

  /** Somebody holds or waits for the lock of this id. */
  isUsed(id: string): boolean {
    return this.#locks.has(id)
  }

  async run<T>(id: string, work: () => T | Promise<T>): Promise<T> {
    const lock = this.#lockOf(id)
    const outer = this.#sections.getStore()
    for (let section = outer; section !== undefined; section = section.outer) {
      if (section.open && section.lock === lock) {
        throw new TidemarkError(
          'LOCK_REENTERED',
          `The lock of session ${id} was asked for again inside its own section, which would wait for itself. ` +
            'Use the session you have, and save() instead of update().',
          { details: { id } },
        )
      }
    }
    this.#use(lock, id)
    const section: Section = { lock, open: true, outer }
    try {
      return await lock.mutex.runExclusive(() => this.#sections.run(section, work))
    } finally {
      section.open = false
      this.#leave(lock, id)
    }
  }

  /** For work that no open section waits for, such as a timer's: it may wait for a lock held where it was started. */
  runDetached<T>(id: string, work: () => T | Promise<T>): Promise<T> {
    return this.#sections.run(undefined, () => this.run(id, work))
  }

  /**
   * From now on `newId` resolves to the lock of `oldId`, until nobody uses it any more. Returns what ends the renaming;
   * `undo` gives the new id its own lock again.
   */
  alias(oldId: string, newId: string): { done: () => void; undo: () => void } {
    if (this.#locks.has(newId)) {
      throw new TidemarkError('ROTATION_REFUSED', `Expected nobody to use session ${newId}, but its lock is in use.`, {
        details: { oldId, newId },
      })
    }
    const lock = this.#lockOf(oldId)
    this.#use(lock, oldId)
    lock.users.set(newId, 0)
    this.#locks.set(newId, lock)
    return {
      done: () => this.#leave(lock, oldId),
      undo: () => {
        lock.retired.add(newId)
        this.#leave(lock, oldId)
      },
    }
  }

  #lockOf(id: string): Lock {
    return this.#locks.get(id) ?? { mutex: new Mutex(), users: new Map([[id, 0]]), retired: new Set() }
  }

  #use(lock: Lock, id: string): void {
    lock.users.set(id, (lock.users.get(id) ?? 0) + 1)
    this.#locks.set(id, lock)
  }

  #leave(lock: Lock, id: string): void {
    lock.users.set(id, (lock.users.get(id) ?? 0) - 1)
    const unused = [...lock.users.values()].every((count) => count === 0)
    for (const [each, count] of lock.users) {
      if (!unused && !(count === 0 && lock.retired.has(each))) continue
      lock.users.delete(each)
      this.#locks.delete(each)
    }
  }
}
