import { expect, test } from 'vitest'
import { drainTime, endOf, SHARES, STEPS } from '../../src/shutdown/plan.js'

test('D3: the shares grow from step to step and end with the deadline', () => {
  const ends = STEPS.map((step) => SHARES[step])
  expect(ends).toEqual([...ends].sort((one, other) => one - other))
  expect(new Set(ends).size).toBe(ends.length)
  expect(ends.at(-1)).toBe(1)
})

test('a step ends at its part of the deadline, however late it began', () => {
  expect(endOf('checkpointers', 1_000, 10_000, 1_000)).toBe(2_000)
  expect(endOf('turns', 1_000, 10_000, 1_200)).toBe(5_000)
  expect(endOf('turns', 1_000, 10_000, 4_900)).toBe(5_000)
  expect(endOf('report', 1_000, 10_000, 1_200)).toBe(11_000)
})

test('connections without a turn get a twentieth of the deadline, and no more than their share', () => {
  expect(endOf('connections', 1_000, 10_000, 1_300)).toBe(1_800)
  expect(endOf('connections', 1_000, 10_000, 5_900)).toBe(6_000)
})

test('the drain ends before its step does, so that its report arrives', () => {
  expect(drainTime(10_000, 10_000, 4_000)).toBe(5_800)
  expect(drainTime(10_000, 10_000, 9_900)).toBe(0)
})
