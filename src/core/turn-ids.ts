/**
 * The host's turn ids and their generations, as an immutable index: runs of doubling size, merged as they grow, so
 * that remembering the n-th id costs O(log n) and never copies the whole.
 */
export type TurnIds = readonly ReadonlyMap<string, number>[]

export function findTurnId(ids: TurnIds | undefined, turnId: string): number | undefined {
  for (const run of ids ?? []) {
    const generation = run.get(turnId)
    if (generation !== undefined) return generation
  }
  return undefined
}

export function addTurnId(ids: TurnIds | undefined, turnId: string, generation: number): TurnIds {
  const runs = [...(ids ?? [])]
  let merged: ReadonlyMap<string, number> = new Map([[turnId, generation]])
  for (let last = runs.at(-1); last !== undefined && last.size <= merged.size; last = runs.at(-1)) {
    merged = new Map([...last, ...merged])
    runs.pop()
  }
  return [...runs, merged]
}

/** Forgets the ids of the given range; `undefined` when none is left. */
export function dropTurnIds(ids: TurnIds | undefined, from: number, to: number): TurnIds | undefined {
  if (ids === undefined) return undefined
  const kept = new Map<string, number>()
  for (const run of ids) {
    for (const [turnId, generation] of run) if (generation < from || generation > to) kept.set(turnId, generation)
  }
  return kept.size === 0 ? undefined : [kept]
}
