import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { MemoryLifecycle } from '../../src/index.js'
import { AgentPool } from '../../src/pool/index.js'
import { freshLedger } from '../support/ledgers.js'
import { Watch } from './watched-agent.js'

const SESSIONS = 500
const TURNS = 4
const WORKERS = 50

/** Small whole numbers, the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

async function loops(count: number): Promise<void> {
  for (let loop = 0; loop < count; loop += 1) await nextTurn()
}

test.each([
  ['a provider that works', 0],
  ['a provider that fails one call in five', 5],
])(
  'B4, B5: 10 agents under 500 sessions with concurrent turns and %s: every turn committed, every agent closed once, never in use',
  async (_name, failOneIn) => {
    const pick = numbers(20_250_101)
    const watch = new Watch()
    const retry = { attempts: 1_000, minDelayMs: 1, maxDelayMs: 2 }
    await using lifecycle = await MemoryLifecycle.open({ ledger: freshLedger(), retry })
    const pool = new AgentPool({
      lifecycle,
      max: 10,
      create: async (sessionId) => {
        await loops(pick(3))
        return watch.create(sessionId, {
          commit: async () => {
            await loops(pick(4))
            if (failOneIn > 0 && pick(failOneIn) === 0) throw new Error('try again')
          },
          close: () => loops(pick(3)),
        })
      },
    })
    const order = Array.from({ length: SESSIONS * TURNS }, (_, index) => `session-${index % SESSIONS}`)
      .map((sessionId) => ({ sessionId, rank: pick(1_000_000) }))
      .sort((one, other) => one.rank - other.rank)
    let biggest = 0
    const worker = async (): Promise<void> => {
      for (let next = order.pop(); next !== undefined; next = order.pop()) {
        const { sessionId } = next
        await pool.use(sessionId, (agent) =>
          agent.serve(async () => {
            await loops(pick(3))
            await lifecycle.markTurnCompleted(sessionId, { agent })
            biggest = Math.max(biggest, pool.size)
          }),
        )
      }
    }
    await Promise.all(Array.from({ length: WORKERS }, worker))
    expect(pool.size).toBe(10)
    await pool.close()
    expect(await lifecycle.drain()).toMatchObject({ remaining: [] })
    await loops(20)

    expect(watch.violations).toEqual([])
    const expected = Array.from({ length: SESSIONS }, (_, session) =>
      Array.from({ length: TURNS }, (_each, turn) => `session-${session}:${turn + 1}`),
    ).flat()
    expect([...watch.committed.keys()].sort()).toEqual(expected.sort())
    expect(new Set(watch.committed.values())).toEqual(new Set([1]))
    expect(watch.agents.filter(({ closes }) => closes !== 1)).toEqual([])
    expect(watch.agents.length).toBeGreaterThan(SESSIONS)
    // Every worker may pin one: that is how far the pool may grow.
    expect(biggest).toBeLessThanOrEqual(WORKERS)
    // With work left its owner stays open beside the next agent; without, there is never a second one.
    if (failOneIn === 0) expect(watch.mostOpen).toBe(1)
  },
)
