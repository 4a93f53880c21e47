import type { Phase1Fault } from './commit.js'
import type { Answer } from './envelope.js'
import type { Operation } from './routes.js'

/** A point where a request is held until the test lets it go. */
export interface Gate {
  /** Resolves when a request has arrived there. */
  readonly reached: Promise<void>
  release(): void
  /** Resolves when that request is over: applied, or lost with its server. */
  readonly passed: Promise<void>
}

interface Hold {
  readonly arrive: () => void
  readonly opened: Promise<void>
  readonly leave: () => void
}

/** What happens to one request: before it is applied, while, and after. */
export interface Fault {
  readonly drop?: 'before' | 'after'
  readonly delay?: { readonly at: 'before' | 'after'; readonly ms: number }
  readonly hold?: { readonly at: 'before' | 'after'; readonly hold: Hold }
  readonly answer?: { readonly at: 'before' | 'after'; readonly answer: Answer }
  readonly phase1?: Phase1Fault
}

/** Faults wait in line for their operation; each request of that kind takes one. */
export class FaultPlan {
  readonly #waiting = new Map<Operation, Fault[]>()

  add(op: Operation, fault: Fault): void {
    this.#waiting.set(op, [...(this.#waiting.get(op) ?? []), fault])
  }

  take(op: Operation): Fault {
    return this.#waiting.get(op)?.shift() ?? {}
  }

  /** How many are still waiting: a test that planned a fault may ask whether it happened. */
  get size(): number {
    return [...this.#waiting.values()].reduce((sum, faults) => sum + faults.length, 0)
  }

  gate(op: Operation, at: 'before' | 'after'): Gate {
    const [reached, arrive] = signal()
    const [opened, release] = signal()
    const [passed, leave] = signal()
    this.add(op, { hold: { at, hold: { arrive, opened, leave } } })
    return { reached, release, passed }
  }
}

function signal(): [Promise<void>, () => void] {
  let give = (): void => undefined
  const given = new Promise<void>((resolve) => (give = resolve))
  return [given, () => give()]
}
