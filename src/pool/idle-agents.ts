import { LRUCache } from 'lru-cache'
import type { Clock } from '../base/clock.js'

interface Idle<Item> {
  readonly item: Item
  /** Epoch milliseconds. */
  readonly since: number
}

/**
 * Agents that serve nobody, in the order in which they became idle. It only collects victims, synchronously; what
 * becomes of them is the pool's business.
 */
export class IdleAgents<Item extends object> {
  readonly #order: LRUCache<Item, Idle<Item>>
  /** Agents whose eviction failed: taken when no other victim is left, so that they do not block the rest. */
  readonly #refused = new Set<Item>()
  readonly #clock: Clock
  readonly #idleMs: number | undefined
  readonly #onExpired: (item: Item) => void
  #cancelTimer: (() => void) | undefined

  constructor(options: {
    readonly max: number
    readonly idleMs: number | undefined
    readonly clock: Clock
    readonly onExpired: (item: Item) => void
  }) {
    this.#clock = options.clock
    this.#idleMs = options.idleMs
    this.#onExpired = options.onExpired
    // Never full: the pool takes victims before it adds. So the cache drops nothing by itself.
    this.#order = new LRUCache<Item, Idle<Item>>({ max: options.max })
  }

  add(item: Item): void {
    this.#order.set(item, { item, since: this.#clock.now() })
    this.#armTimer()
  }

  addRefused(item: Item): void {
    this.#refused.add(item)
  }

  remove(item: Item): void {
    this.#order.delete(item)
    this.#refused.delete(item)
  }

  /** The agent that has been idle longest. */
  take(): Item | undefined {
    const item = this.#longest()?.item ?? this.#refused.values().next().value
    if (item !== undefined) this.remove(item)
    return item
  }

  clear(): void {
    this.#cancelTimer?.()
    this.#cancelTimer = undefined
    this.#order.clear()
    this.#refused.clear()
  }

  #longest(): Idle<Item> | undefined {
    const { value } = this.#order.rkeys().next()
    return value === undefined ? undefined : this.#order.peek(value)
  }

  /** One timer, for the agent that has been idle longest: the others come later. */
  #armTimer(): void {
    const longest = this.#longest()
    if (this.#idleMs === undefined || longest === undefined || this.#cancelTimer !== undefined) return
    const dueIn = longest.since + this.#idleMs - this.#clock.now()
    this.#cancelTimer = this.#clock.setTimer(() => this.#expire(), Math.max(0, dueIn))
  }

  #expire(): void {
    this.#cancelTimer = undefined
    const idleSince = this.#clock.now() - (this.#idleMs ?? Infinity)
    for (let idle = this.#longest(); idle !== undefined && idle.since <= idleSince; idle = this.#longest()) {
      this.remove(idle.item)
      this.#onExpired(idle.item)
    }
    this.#armTimer()
  }
}
