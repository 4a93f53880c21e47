import { expect, test } from 'vitest'
import { faultyLedger, scriptedAgent, steps } from '../../src/testing/index.js'
import { failAt } from '../support/fail-at.js'
import { freshLedger } from '../support/ledgers.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

const POSITIONS = 60

/** What a host does that is told of a failure: it asks again. */
async function persist<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch {
    return ask()
  }
}

test.each(['failNext', 'loseNext'] as const)(
  'C14: whichever transaction fails (%s), every turn is committed in the end, once for each key, and no claim is stuck',
  async (how) => {
    for (let position = 0; position < POSITIONS; position += 1) {
      const ledger = faultyLedger(freshLedger())
      const { lifecycle, clock } = await openLifecycle({ ledger })
      const [ann, bob] = [scriptedAgent({ agentId: 'ann' }), scriptedAgent({ agentId: 'bob' })]
      ann.script.push(steps.reject(new Error('down')), steps.commit(), steps.accept('r1'), steps.accept('r2'))
      ann.settleScript.push(steps.answer({ status: 'pending' }), steps.answer({ status: 'failed', error: 'no' }))
      const callOff = failAt(ledger, position, how)
      const mark = (turnId: string, agent: typeof ann): Promise<number> =>
        persist(() => lifecycle.markTurnCompleted('s', { agent, turnId }))
      await mark('one', ann)
      await mark('two', bob)
      lifecycle.switchSession('s', 'next')
      await settle()
      await clock.advance(2_000)
      await mark('three', ann)
      await persist(() => lifecycle.rotate('s', 'next'))
      await clock.advance(5_000)
      await mark('four', ann)
      await persist(() => lifecycle.retractTurns('s', 99))
      await clock.advance(60_000)
      await persist(() => lifecycle.evict('s'))
      await clock.advance(600_000)
      callOff()
      const name = `${how} ${position}`
      expect(await lifecycle.inspect('s'), name).toMatchObject({ generation: 4, watermark: 4, inFlight: false })
      expect(await lifecycle.health(), name).toMatchObject({ status: 'ok', dirtySessions: 0, inFlight: 0 })
      const learned = [...ann.seen, ...bob.seen].map(({ idempotencyKey }) => idempotencyKey)
      expect(new Set(learned).size, name).toBe(5)
      await lifecycle.evict('next')
      await settle()
      expect(ann.closes, name).toBe(1)
      await lifecycle.close()
      expect(clock.pending, name).toBe(0)
    }
  },
)
