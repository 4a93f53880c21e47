/**
 * A small independent model of a session: one record a generation, nothing shared with the implementation. Slow and
 * plain on purpose.
 */
export interface Generation {
  readonly owner: string | undefined
  phase: 'dirty' | 'claimed' | 'accepted' | 'parked' | 'committed'
  retracted: boolean
  /** The offer it became part of by its first claim. */
  offer: Offer | undefined
}

export interface Offer {
  key: string
  attempts: number
  owner: string | undefined
}

export interface Candidate {
  readonly members: readonly number[]
  readonly offer: Offer | undefined
  readonly owner: string | undefined
}

export class SessionModel {
  readonly generations: Generation[] = []
  token = 0

  record(owner: string | undefined): number {
    this.generations.push({ owner, phase: 'dirty', retracted: false, offer: undefined })
    return this.generations.length
  }

  at(generation: number): Generation {
    const found = this.generations[generation - 1]
    if (found === undefined) throw new Error(`the model has no generation ${generation}`)
    return found
  }

  /** Uncommitted runs, oldest first: what was offered together, or consecutive turns of one owner never offered. */
  runs(): Candidate[] {
    const runs: { members: number[]; offer: Offer | undefined; owner: string | undefined }[] = []
    let broken = true
    for (const [index, { phase, retracted, offer, owner }] of this.generations.entries()) {
      const generation = index + 1
      if (phase === 'committed') {
        if (!retracted) broken = true
        continue
      }
      const last = runs.at(-1)
      const continues =
        last !== undefined &&
        (offer === undefined ? !broken && last.offer === undefined && last.owner === owner : last.offer === offer)
      if (continues) last.members.push(generation)
      else runs.push({ members: [generation], offer, owner: offer?.owner ?? owner })
      broken = false
    }
    return runs
  }

  phaseOf(run: Candidate): Generation['phase'] {
    return this.at(run.members[0] ?? 0).phase
  }

  nextToClaim(reachable: ReadonlySet<string>): Candidate | 'busy' | undefined {
    if (this.generations.some(({ phase }) => phase === 'claimed')) return 'busy'
    return this.runs().find(
      (run) => this.phaseOf(run) === 'dirty' && run.owner !== undefined && reachable.has(run.owner),
    )
  }

  set(members: readonly number[], phase: Generation['phase']): void {
    for (const generation of members) this.at(generation).phase = phase
  }

  membersOf(offer: Offer): number[] {
    return this.generations.flatMap((each, index) =>
      each.offer === offer && each.phase !== 'committed' ? [index + 1] : [],
    )
  }

  watermark(): number {
    const first = this.generations.findIndex(({ phase }) => phase !== 'committed')
    return first < 0 ? this.generations.length : first
  }
}
