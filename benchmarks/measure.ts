/** Runs the contenders in turns, so that a noisy moment hits all of them, and gives the median rate of each. */
export async function rates<Name extends string>(
  contenders: Record<Name, () => Promise<number>>,
  rounds = 7,
): Promise<Record<Name, number>> {
  const names = Object.keys(contenders) as Name[]
  const seen = new Map<Name, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) {
      const start = performance.now()
      const operations = await contenders[name]()
      seen.get(name)?.push((operations * 1000) / (performance.now() - start))
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(seen.get(name) ?? [])])) as Record<Name, number>
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}
