import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { MemoryLifecycle, type LifecycleOptions, type SessionSnapshot } from '../../src/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import type { OpenVikingProvider } from '../../src/providers/openviking/index.js'
import type { CompletedTurn } from '../../src/coordinator/agent.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { until, type AtEnd } from './wire.js'

/** A coordinator in a hurry, on the SQLite ledger: the retry policy of production with short delays. */
export async function openLifecycle(
  options: LifecycleOptions = {},
  atEnd: AtEnd = onTestFinished,
): Promise<MemoryLifecycle> {
  const lifecycle = await MemoryLifecycle.open({
    ledger: sqliteLedger({ path: join(temporaryDirectory(), 'ledger.db') }),
    retry: { attempts: 8, minDelayMs: 1, maxDelayMs: 4 },
    settleTimeoutMs: 20_000,
    ...options,
  })
  atEnd(() => lifecycle.close())
  return lifecycle
}

export async function mark(
  lifecycle: MemoryLifecycle,
  provider: OpenVikingProvider,
  turns: readonly CompletedTurn[],
): Promise<void> {
  for (const { sessionId, messages } of turns)
    await lifecycle.markTurnCompleted(sessionId, { agent: provider.agent(sessionId), messages })
}

/** Everything committed, or everything that is left parked. */
export async function finish(lifecycle: MemoryLifecycle, sessionId: string): Promise<SessionSnapshot> {
  let snapshot: SessionSnapshot | undefined
  await until(`session ${sessionId} is committed or parked`, async () => {
    snapshot = await lifecycle.inspect(sessionId)
    return snapshot?.segments.every((segment) => segment.state === 'parked') ?? false
  })
  return snapshot!
}
