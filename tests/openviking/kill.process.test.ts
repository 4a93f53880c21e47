import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { startChild } from '../support/child.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { makeProvider, makeTurns, once, play } from './driver.js'
import { finish, openLifecycle } from './through-lifecycle.js'
import { startDouble, until, type Double } from './wire.js'

const CLIENT = new URL('kill-child.ts', import.meta.url)
const WHOLE_CLIENT = new URL('kill-lifecycle-child.ts', import.meta.url)

/** The client dies by SIGKILL at each step; the next process finds turns, keys and receipts in the ledger. */
describe('client with the SQLite ledger killed', () => {
  for (const op of ['get', 'create', 'batch', 'commit', 'task'] as const) {
    for (const at of ['before', 'after'] as const) {
      for (const outcome of ['completes', 'fails'] as const) {
        it(`${at} ${op} is applied, and the extraction ${outcome}: every turn is extracted exactly once`, async () => {
          const double = await startDouble()
          if (outcome === 'fails') double.controls.failPhase2('model gone')
          const path = join(temporaryDirectory(), 'ledger.db')
          const gate = double.controls.gate(op, at)
          const client = startChild(WHOLE_CLIENT, [double.url, path])
          await gate.reached
          client.kill('SIGKILL')
          await client.ended
          gate.release()
          await gate.passed
          const provider = makeProvider(double)
          const lifecycle = await openLifecycle({
            ledger: sqliteLedger({ path }),
            revive: ({ sessionId }) => provider.agent(sessionId),
          })
          expect(await finish(lifecycle, 's')).toMatchObject({ generation: 3, watermark: 3, segments: [] })
          await over(double)
          expect(double.stats.extracted).toEqual(once(makeTurns(3)))
        })
      }
    }
  }
})

/**
 * Without a ledger, for the worst case: whatever the client had learned is forgotten, and the segment is offered again
 * under the same key while a request of the dead client may still be under way.
 */
describe.each(['0.4.16', '0.2.8'] as const)('client killed, server %s', (profile) => {
  const adding = profile === '0.2.8' ? 'add' : 'batch'
  for (const op of ['get', 'create', adding, 'commit', 'task'] as const) {
    for (const at of ['before', 'after'] as const) {
      for (const lands of ['before the restart', 'after everything'] as const) {
        if (at === 'after' && lands === 'after everything') continue // It has landed already.
        // v0.2.8 cannot create a session of a given name, so nothing marks that a first add is under way.
        if (profile === '0.2.8' && op === 'add' && lands === 'after everything') continue
        it(`${at} ${op} is applied, which lands ${lands}: extracted exactly once`, async () => {
          const double = await startDouble({ profile })
          const turns = makeTurns(2)
          const gate = double.controls.gate(op, at)
          const client = startChild(CLIENT, [double.url, 'the-key', String(turns.length)])
          await gate.reached
          client.kill('SIGKILL')
          await client.ended
          if (lands === 'before the restart') {
            gate.release()
            await gate.passed
          }
          const played = await play(makeProvider(double).agent('s'), turns, { key: 'the-key' })
          gate.release()
          await gate.passed
          expect(played.outcome, String(played.errors.at(-1))).toBe('committed')
          await over(double)
          expect(double.stats.extracted).toEqual(once(turns))
        })
      }
    }
  }
})

const over = (double: Double): Promise<void> =>
  until('no task waits', () => double.controls.tasks().every((task) => /ed$/.test(task.status)))
