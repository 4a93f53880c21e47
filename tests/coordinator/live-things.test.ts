import { expect, test } from 'vitest'
import { emptySession } from '../../src/core/index.js'
import { Agents } from '../../src/coordinator/agents.js'
import { Wakes } from '../../src/coordinator/wakes.js'
import { manualClock, scriptedAgent } from '../../src/testing/index.js'

test('B8: an agent that goes from id to id remembers those only that were not discarded', () => {
  const agents = new Agents(() => undefined)
  const handle = agents.handleOf(scriptedAgent())
  agents.register('id 0', handle)
  for (let index = 0; index < 10; index += 1) {
    agents.move(`id ${index}`, `id ${index + 1}`)
    agents.prune(`id ${index}`, emptySession)
  }
  expect(handle.formerIds.size).toBe(10)
  for (let index = 0; index < 10; index += 1) agents.forget(`id ${index}`)
  expect(handle.formerIds.size).toBe(0)
  agents.forget('id 10')
  expect(handle.uses).toBe(0)
})

test('B9: an agent that serves everybody does not remember every rotation, only the latest', () => {
  const agents = new Agents(() => undefined)
  const handle = agents.handleOf(scriptedAgent())
  for (let index = 0; index < 5_000; index += 1) {
    agents.register(`old ${index}`, handle)
    agents.move(`old ${index}`, `new ${index}`)
    agents.prune(`old ${index}`, emptySession)
    agents.forget(`new ${index}`)
    agents.register('always', handle)
  }
  expect(handle.formerIds.size).toBe(1_000)
  expect(agents.ownerOfNext('old 4999')).toBe(handle)
  expect(agents.ownerOfNext('old 0')).toBeUndefined()
  agents.forget('always')
  expect([handle.uses, handle.formerIds.size]).toEqual([0, 0])
})

test('B9: cancelled wake-ups do not pile up, and the others still ring in their order', async () => {
  const clock = manualClock()
  const rung: string[] = []
  const wakes = new Wakes(clock, (sessionId) => rung.push(sessionId))
  const at = clock.now() + 1_000
  wakes.schedule('late', at + 2)
  wakes.schedule('early', at + 1)
  for (let index = 0; index < 10_000; index += 1) {
    wakes.schedule(`finished ${index}`, at)
    wakes.cancel(`finished ${index}`)
  }
  expect(wakes.size).toBeLessThan(200)
  await clock.advance(2_000)
  expect(rung).toEqual(['early', 'late'])
  expect(clock.pending).toBe(0)
})
