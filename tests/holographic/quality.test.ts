import { describe, expect, it } from 'vitest'
import { VectorSpace } from '../../src/providers/holographic/vectors.js'
import { auc, measureContradictions, measureStore, seeded } from './stores.js'

const space = new VectorSpace(1024)

describe('quality on random stores', () => {
  it('better 1, §9: probe, related, reason and search put what belongs to the answer first; the reference does not', async () => {
    for (const seed of [1, 2]) {
      const { reference, formula, answers } = await measureStore(seeded(seed), space)
      for (const value of [formula, answers].flatMap(({ probe, related, reason, search }) => [
        probe,
        related,
        reason,
        search,
      ]))
        expect(value).toBeGreaterThanOrEqual(0.99)
      expect(Math.max(reference.probe, reference.reason, reference.search)).toBeLessThan(0.9)
      expect(reference.related).toBeGreaterThan(0.99)
    }
  })

  it('better 2, §9: contradictions are found, unrelated facts are not reported; with the reference it is the other way round', async () => {
    const { reference, ours } = await measureContradictions(seeded(4), space, 200)
    expect(ours.recall).toBeGreaterThanOrEqual(0.9)
    expect(ours.falseAlarms).toBeLessThanOrEqual(0.05)
    expect(reference.recall).toBeLessThan(0.1)
  })

  it('the measure itself: 1 for a perfect ranking, 0 for the reverse, a half for ties', () => {
    expect(auc([3, 2, 1], [true, false, false])).toBe(1)
    expect(auc([1, 2], [true, false, false])).toBe(0)
    expect(auc([1, 1], [true, false])).toBe(0.5)
  })
})
