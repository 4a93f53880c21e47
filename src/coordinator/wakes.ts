import type { Clock } from '../base/clock.js'

interface Wake {
  readonly at: number
  readonly sessionId: string
}

/** How many cancelled entries are not worth looking for. */
const SPARE = 64

/** When which session next needs attention: a heap with one timer for its head. */
export class Wakes {
  readonly #heap: Wake[] = []
  readonly #times = new Map<string, number>()
  readonly #clock: Clock
  readonly #onWake: (sessionId: string) => void
  #cancelTimer: (() => void) | undefined
  #timerAt = Infinity

  constructor(clock: Clock, onWake: (sessionId: string) => void) {
    this.#clock = clock
    this.#onWake = onWake
  }

  /** Entries held, cancelled ones included. */
  get size(): number {
    return this.#heap.length
  }

  /** Who is woken too early looks again and asks for the next time, so an earlier wake-up is never put off. */
  schedule(sessionId: string, at: number): void {
    const known = this.#times.get(sessionId)
    if (known !== undefined && known <= at) return
    this.#times.set(sessionId, at)
    this.#push({ at, sessionId })
    this.#arm()
  }

  cancel(sessionId: string): void {
    if (!this.#times.delete(sessionId)) return
    if (this.#times.size === 0) this.clear()
    else if (this.#heap.length > 2 * this.#times.size + SPARE) this.#compact()
  }

  clear(): void {
    this.#heap.length = 0
    this.#times.clear()
    this.#arm()
  }

  /** Cancelled entries would stay until their time: a day of finished sessions, for a boundary of a day. */
  #compact(): void {
    const current = this.#heap.filter(({ sessionId, at }) => this.#times.get(sessionId) === at)
    this.#heap.length = 0
    for (const wake of current) this.#push(wake)
    this.#arm()
  }

  #arm(): void {
    const at = this.#heap[0]?.at ?? Infinity
    if (at === this.#timerAt) return
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#timerAt = at
    if (at === Infinity) return
    this.#cancelTimer = this.#clock.setTimer(() => this.#ring(), Math.max(0, at - this.#clock.now()))
  }

  #ring(): void {
    this.#timerAt = Infinity
    const now = this.#clock.now()
    for (let head = this.#heap[0]; head !== undefined && head.at <= now; head = this.#heap[0]) {
      this.#pop()
      // Superseded entries stay in the heap until they surface; only the current one rings.
      if (this.#times.get(head.sessionId) !== head.at) continue
      this.#times.delete(head.sessionId)
      this.#onWake(head.sessionId)
    }
    this.#arm()
  }

  #push(wake: Wake): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(wake)
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent]
      if (above === undefined || above.at <= wake.at) break
      heap[index] = above
      index = parent
    }
    heap[index] = wake
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return
    let index = 0
    for (;;) {
      const left = heap[2 * index + 1]
      const right = heap[2 * index + 2]
      const child = right !== undefined && left !== undefined && right.at < left.at ? right : left
      if (child === undefined || child.at >= last.at) break
      heap[index] = child
      index = child === right ? 2 * index + 2 : 2 * index + 1
    }
    heap[index] = last
  }
}
