import { randomUUID } from 'node:crypto'
import { TidemarkError } from '../base/errors.js'
import {
  type Decision,
  emptySession,
  isFinished,
  type OutboxEntry,
  type Range,
  type SessionState,
} from '../core/index.js'
import type { Decide, Ledger, LedgerHealth, LedgerStats, SessionEntry } from './ledger.js'
import { tallySessions } from './tally.js'

/**
 * A ledger in a Map: for tests and single-run tools, and the default. It survives everything but the process. A
 * session costs its small record until it is discarded, because generations are never counted twice.
 */
export function memoryLedger(): Ledger {
  return new MemoryLedger()
}

class MemoryLedger implements Ledger {
  readonly supports = Object.freeze({ persistent: false, shared: false })
  readonly instance: string = randomUUID()
  readonly #states = new Map<string, SessionState>()
  readonly #outboxes = new Map<string, OutboxEntry[]>()
  #isClosed = false

  open(): Promise<void> {
    return Promise.resolve()
  }

  isAlive(instance: string): boolean {
    return instance === this.instance
  }

  transact<R>(sessionId: string, decide: Decide<R>): Promise<Decision<R>> {
    try {
      return Promise.resolve(this.#transact(sessionId, decide))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  #transact<R>(sessionId: string, decide: Decide<R>): Decision<R> {
    this.#refuseIfClosed()
    const before = this.#states.get(sessionId) ?? emptySession
    const decision = decide(before)
    if (decision.forget === true) this.#forget(sessionId)
    else if (decision.state !== before) this.#store(sessionId, decision)
    return decision
  }

  #store(sessionId: string, { state, append, drop }: Decision<unknown>): void {
    this.#states.set(sessionId, state)
    if (drop !== undefined) this.#drop(sessionId, drop)
    if (append !== undefined) {
      const outbox = this.#outboxes.get(sessionId)
      if (outbox === undefined) this.#outboxes.set(sessionId, [append])
      else outbox.push(append)
    }
  }

  #drop(sessionId: string, ranges: readonly Range[]): void {
    const outbox = this.#outboxes.get(sessionId)
    if (outbox === undefined) return
    const kept = outbox.filter(
      ({ generation }) => !ranges.some(({ from, to }) => from <= generation && generation <= to),
    )
    if (kept.length === 0) this.#outboxes.delete(sessionId)
    else this.#outboxes.set(sessionId, kept)
  }

  #forget(sessionId: string): void {
    this.#states.delete(sessionId)
    this.#outboxes.delete(sessionId)
  }

  #refuseIfClosed(): void {
    if (!this.#isClosed) return
    throw new TidemarkError(
      'CLOSED',
      'The memory ledger is closed; nothing more can be recorded in it or read from it.',
    )
  }

  async *sessions(which: 'unfinished' | 'all'): AsyncGenerator<SessionEntry> {
    this.#refuseIfClosed()
    const entries = [...this.#states].filter(([, state]) => which === 'all' || !isFinished(state))
    entries.sort(([, one], [, other]) => compare(waitingSince(one), waitingSince(other)))
    for (const [sessionId, state] of entries) yield { sessionId, state }
    await Promise.resolve()
  }

  async *outbox(sessionId: string, from: number, to: number): AsyncGenerator<OutboxEntry> {
    this.#refuseIfClosed()
    for (const entry of this.#outboxes.get(sessionId) ?? []) {
      if (entry.messages !== undefined && from <= entry.generation && entry.generation <= to) yield entry
    }
    await Promise.resolve()
  }

  async stats(): Promise<LedgerStats> {
    this.#refuseIfClosed()
    return Promise.resolve(tallySessions(this.#states.values()))
  }

  health(): LedgerHealth {
    return this.#isClosed ? { status: 'unhealthy', reason: 'closed' } : { status: 'ok' }
  }

  close(): Promise<void> {
    this.#isClosed = true
    return Promise.resolve()
  }
}

function waitingSince(state: SessionState): number {
  return (state.segments[0] ?? state.tail)?.since ?? Infinity
}

function compare(one: number, other: number): number {
  return one < other ? -1 : one > other ? 1 : 0
}
