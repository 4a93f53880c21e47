/** Who holds a slot: the name of a provider, or an agent that names none. */
export type ProviderKey = string | object

export interface Slot {
  /** Says late whose it is, once that is known. */
  moveTo(provider: ProviderKey): void
  /** Idempotent. */
  release(): void
}

interface Waiter {
  readonly provider: ProviderKey
  readonly grant: (slot: Slot | undefined) => void
}

/**
 * One concurrency limit over all sessions, fair to all: providers take turns, each serves its sessions in order, and
 * while others wait one provider holds at most half of the slots (D2). A provider that let a call run out of time
 * keeps to its half even when nobody waits, so that the next one to come finds room.
 */
export class Slots {
  readonly #queues = new Map<ProviderKey, Waiter[]>()
  readonly #held = new Map<ProviderKey, number>()
  /** Named ones only: an agent that names none is its own provider and holds few. */
  readonly #slow = new Set<ProviderKey>()
  /** Providers with work that is about to ask, and how much of it. */
  readonly #announced = new Map<ProviderKey, number>()
  #limit: number
  #inUse = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get limit(): number {
    return this.#limit
  }

  set limit(limit: number) {
    this.#limit = limit
    this.#grantFree()
  }

  /** A slot at once, if one is free and nobody waits for it. */
  take(provider: ProviderKey): Slot | undefined {
    if (this.#queues.size > 0 || this.#inUse >= this.#limit || !this.hasRoomFor(provider)) return undefined
    return this.#hand(provider)
  }

  /** Waits for a slot; `undefined` when the signal ended the wait. */
  acquire(provider: ProviderKey, signal: AbortSignal | undefined): Promise<Slot | undefined> {
    if (signal?.aborted === true) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#leave(waiter)
        resolve(undefined)
      }
      const waiter: Waiter = {
        provider,
        grant: (slot) => {
          signal?.removeEventListener('abort', leave)
          resolve(slot)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      const queue = this.#queues.get(provider)
      if (queue === undefined) this.#queues.set(provider, [waiter])
      else queue.push(waiter)
      this.#grantFree()
    })
  }

  /** Counts a provider among those that wait although it has not asked yet, until the returned function is called. */
  announce(provider: ProviderKey): () => void {
    this.#announced.set(provider, (this.#announced.get(provider) ?? 0) + 1)
    return () => {
      const left = (this.#announced.get(provider) ?? 1) - 1
      if (left > 0) this.#announced.set(provider, left)
      else this.#announced.delete(provider)
      this.#grantFree()
    }
  }

  /** Would one more slot for this provider leave the others their share? */
  hasRoomFor(provider: ProviderKey): boolean {
    return (this.#held.get(provider) ?? 0) < this.#share() || this.#isAlone(provider)
  }

  noteSlow(provider: ProviderKey): void {
    if (typeof provider === 'string') this.#slow.add(provider)
  }

  noteSuccess(provider: ProviderKey): void {
    if (this.#slow.delete(provider)) this.#grantFree()
  }

  #share(): number {
    return Math.max(1, Math.floor(this.#limit / 2))
  }

  #isAlone(provider: ProviderKey): boolean {
    return !this.#slow.has(provider) && isOnly(this.#queues, provider) && isOnly(this.#announced, provider)
  }

  #grantFree(): void {
    while (this.#inUse < this.#limit) {
      const next = this.#nextInLine()
      if (next === undefined) return
      const queue = this.#queues.get(next) ?? []
      const waiter = queue.shift()
      // To the end of the line, so that providers take turns.
      this.#queues.delete(next)
      if (queue.length > 0) this.#queues.set(next, queue)
      waiter?.grant(this.#hand(next))
    }
  }

  #nextInLine(): ProviderKey | undefined {
    for (const provider of this.#queues.keys()) if (this.hasRoomFor(provider)) return provider
    return undefined
  }

  #leave(waiter: Waiter): void {
    const queue = this.#queues.get(waiter.provider)
    const index = queue?.indexOf(waiter) ?? -1
    if (queue === undefined || index < 0) return
    queue.splice(index, 1)
    if (queue.length === 0) this.#queues.delete(waiter.provider)
    this.#grantFree()
  }

  #hand(provider: ProviderKey): Slot {
    let holder: ProviderKey | undefined = provider
    this.#count(provider, 1)
    this.#inUse += 1
    return {
      moveTo: (next) => {
        if (holder === undefined || holder === next) return
        this.#count(holder, -1)
        this.#count(next, 1)
        holder = next
      },
      release: () => {
        if (holder === undefined) return
        this.#count(holder, -1)
        this.#inUse -= 1
        holder = undefined
        this.#grantFree()
      },
    }
  }

  #count(provider: ProviderKey, change: 1 | -1): void {
    const held = (this.#held.get(provider) ?? 0) + change
    if (held === 0) this.#held.delete(provider)
    else this.#held.set(provider, held)
  }
}

function isOnly(waiting: ReadonlyMap<ProviderKey, unknown>, provider: ProviderKey): boolean {
  return waiting.size === 0 || (waiting.size === 1 && waiting.has(provider))
}
