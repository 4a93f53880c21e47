import type { MemoryAgent } from '../coordinator/agent.js'
import type { EvictReport } from '../coordinator/reports.js'

/** An eviction under way. */
export interface Eviction<Agent> {
  /** Asked for by name: who comes now gets a new agent. Otherwise the session may have its agent back. */
  isFinal: boolean
  /** The lifecycle has let go of the agent, and may be closing it: nobody gets it back. */
  isReleased: boolean
  /** Ends the eviction for a session that came back. */
  readonly stop: AbortController
  readonly report: Promise<EvictReport>
  /** Resolves when the eviction has ended; with the agent, if it is still open because the eviction failed. */
  readonly ended: Promise<Agent | undefined>
}

/** One session of the pool, with its agent once that is created. */
export class Resident<Agent extends MemoryAgent> {
  /** Changes when the session is rotated. */
  sessionId: string
  agent: Agent | undefined
  /** Turns that are being served, or wait for the agent. */
  pins = 0
  eviction: Eviction<Agent> | undefined
  readonly ready: Promise<Agent>
  readonly #holds: (() => void)[] = []

  /** `bring` must not call back before it is awaited. */
  constructor(sessionId: string, bring: (self: Resident<Agent>) => Promise<Agent>) {
    this.sessionId = sessionId
    this.ready = bring(this)
    // Whoever waits hears of a failure. All of them may have stopped waiting.
    this.ready.catch(() => undefined)
  }

  get isIdle(): boolean {
    return this.pins === 0 && this.agent !== undefined && this.eviction === undefined
  }

  keepHold(release: () => void): void {
    this.#holds.push(release)
  }

  releaseHolds(): void {
    for (const release of this.#holds.splice(0)) release()
  }
}
