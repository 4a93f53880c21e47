import { spawn, type ChildProcess } from 'node:child_process'
import { once as onceEmitted } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { makeProvider, makeTurns, once, play } from './driver.js'
import { startDouble, until } from './wire.js'

/**
 * The client dies by SIGKILL while a request is before or behind the server's door; another process offers the segment
 * again under the same key, which is all that a ledger gives it.
 */

const CHILD = fileURLToPath(new URL('kill-child.ts', import.meta.url))

function startClient(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, ['--import', 'tsx', CHILD, ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

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
          const client = startClient(double.url, 'the-key', String(turns.length))
          await gate.reached
          const exited = onceEmitted(client, 'exit')
          client.kill('SIGKILL')
          await exited
          if (lands === 'before the restart') {
            gate.release()
            await gate.passed
          }
          const played = await play(makeProvider(double).agent('s'), turns, { key: 'the-key' })
          gate.release()
          await gate.passed
          expect(played.outcome, String(played.errors.at(-1))).toBe('committed')
          await until('no task waits', () => double.controls.tasks().every((task) => /ed$/.test(task.status)))
          expect(double.stats.extracted).toEqual(once(turns))
        })
      }
    }
  }
})
