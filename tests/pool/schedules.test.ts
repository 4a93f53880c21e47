import fc from 'fast-check'
import { expect, test } from 'vitest'
import { AgentPool } from '../../src/pool/index.js'
import { openLifecycle } from '../support/lifecycle.js'
import { Watch } from './watched-agent.js'

/** TIDEMARK_SCHEDULES=5000 looks further. */
const RUNS = Number(process.env['TIDEMARK_SCHEDULES'] ?? 300)

const action = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('use' as const), session: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('evict' as const), session: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('expel' as const), session: fc.constantFrom('a', 'b', 'c') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), session: fc.constant('a') }) },
)

test('B4, B5: in any order of use, evict and close no agent is closed in use, none twice, none is left, no turn is lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.array(action, { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 2 }),
      async (scheduler, actions, max) => {
        const { lifecycle, clock } = await openLifecycle()
        const watch = new Watch()
        const step = (label: string): Promise<void> => scheduler.schedule(Promise.resolve(), label)
        const pool = new AgentPool({
          lifecycle,
          clock,
          max,
          create: async (sessionId) => {
            await step(`create ${sessionId}`)
            return watch.create(sessionId, {
              commit: () => step(`commit ${sessionId}`),
              close: () => step(`close the agent of ${sessionId}`),
            })
          },
        })
        const marked = new Map<string, number>()
        const refused: unknown[] = []
        const run = async ({ kind, session }: (typeof actions)[number]): Promise<void> => {
          await step(`${kind} ${session}`)
          try {
            if (kind === 'evict') await pool.evict(session)
            else if (kind === 'expel') await lifecycle.evict(session)
            else if (kind === 'close') await pool.close()
            else {
              await pool.use(session, (agent) =>
                agent.serve(async () => {
                  await step(`think about ${session}`)
                  const generation = await lifecycle.markTurnCompleted(session, { agent })
                  marked.set(`${session}:${generation}`, 1)
                  await step(`answer in ${session}`)
                }),
              )
            }
          } catch (error) {
            refused.push(error)
          }
        }
        const all = Promise.all(actions.map(run)).then(() => pool.close())
        await scheduler.waitFor(all)
        await scheduler.waitFor(lifecycle.drain())

        expect(watch.violations).toEqual([])
        expect(watch.agents.filter(({ closes }) => closes !== 1)).toEqual([])
        expect(watch.mostOpen).toBeLessThanOrEqual(1)
        expect(watch.committed).toEqual(marked)
        expect(pool.size + pool.evicting).toBe(0)
        for (const error of refused) expect(error).toMatchObject({ code: 'CLOSED' })
        if (!actions.some(({ kind }) => kind === 'close')) expect(refused).toEqual([])
      },
    ),
    { numRuns: RUNS },
  )
})
