import type { ClaimedSegment } from '../core/index.js'
import type { AbortCause } from './call.js'
import type { StepOutcome } from './outcomes.js'

/** One commit of a session under way, from the moment somebody asked for it: the session is busy until it has landed. */
export class Flight {
  readonly sessionId: string
  /** A claim has been asked for: it may be in the ledger before anybody here knows. */
  isClaiming = false
  /** What is being offered, once it is claimed. */
  segment: ClaimedSegment | undefined
  /** The session was discarded under it. */
  isDiscarded = false
  abort: (cause: AbortCause) => void = () => undefined
  /** What it came to; nothing if the ledger failed. */
  readonly landed: Promise<StepOutcome | undefined>
  readonly land: (outcome: StepOutcome | undefined) => void

  constructor(sessionId: string) {
    this.sessionId = sessionId
    let land: Flight['land'] = () => undefined
    this.landed = new Promise((resolve) => {
      land = resolve
    })
    this.land = land
  }
}

/** At most one flight a session (C7). */
export class Flights {
  readonly #bySession = new Map<string, Flight>()

  get(sessionId: string): Flight | undefined {
    return this.#bySession.get(sessionId)
  }

  start(sessionId: string): Flight {
    const flight = new Flight(sessionId)
    this.#bySession.set(sessionId, flight)
    return flight
  }

  end(flight: Flight, outcome: StepOutcome | undefined): void {
    this.#bySession.delete(flight.sessionId)
    flight.land(outcome)
  }

  /** Those whose provider has been called. */
  *offered(): Generator<Flight & { readonly segment: ClaimedSegment }> {
    for (const flight of this.#bySession.values()) {
      if (flight.segment !== undefined) yield flight as Flight & { readonly segment: ClaimedSegment }
    }
  }

  /** Sessions that have a claim in the ledger, or may have one in a moment. */
  *claiming(): Generator<string> {
    for (const { sessionId, isClaiming } of this.#bySession.values()) if (isClaiming) yield sessionId
  }

  abortAll(cause: AbortCause): void {
    for (const flight of this.#bySession.values()) flight.abort(cause)
  }
}
