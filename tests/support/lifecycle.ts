import { afterEach } from 'vitest'
import { type LifecycleOptions, MemoryLifecycle } from '../../src/index.js'
import { type ManualClock, manualClock } from '../../src/testing/index.js'
import { freshLedger, ledgerKind } from './ledgers.js'

const opened: MemoryLifecycle[] = []

/** Whatever a test opened is closed after it. */
afterEach(async () => {
  for (const lifecycle of opened.splice(0)) await lifecycle.close()
})

export interface Opened {
  readonly lifecycle: MemoryLifecycle
  readonly clock: ManualClock
}

export async function openLifecycle(options: LifecycleOptions = {}): Promise<Opened> {
  const clock = manualClock()
  const lifecycle = await MemoryLifecycle.open({ clock, ledger: freshLedger(), random: () => 0.5, ...options })
  opened.push(lifecycle)
  return { lifecycle, clock }
}

/** Lets everything that is ready run. */
export async function settle(turns = 30): Promise<void> {
  for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** The smallest step in which something can happen: a microtask in memory, a turn of the event loop on disk. */
export function tick(): Promise<unknown> {
  return ledgerKind === 'memory' ? Promise.resolve() : new Promise((resolve) => setImmediate(resolve))
}
