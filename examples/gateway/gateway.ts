import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Logger, MemoryLifecycle } from 'tidemark'
import { RunJournal } from 'tidemark/journal'
import { AgentPool } from 'tidemark/pool'
import { SessionStore } from 'tidemark/sessions'
import { sqliteLedger } from 'tidemark/sqlite'
import type { Memory } from './memory/memory.js'
import type { Model } from './model/model.js'
import { calculator } from './tools/calculator.js'
import { clock } from './tools/clock.js'
import { Turns } from './turns/turns.js'

export interface GatewayOptions {
  readonly directory: string
  readonly model: Model
  readonly openMemory: (directory: string) => Memory | Promise<Memory>
  readonly logger: Logger
}

/** Everything behind the HTTP server: what is kept, what remembers, what answers. */
export interface Gateway {
  readonly sessions: SessionStore
  readonly journal: RunJournal
  readonly lifecycle: MemoryLifecycle
  readonly pool: AgentPool
  readonly memory: Memory
  readonly model: Model
  readonly turns: Turns
  readonly logger: Logger
}

const LIVE_AGENTS = 100
const JOURNAL_DAYS = 7
const MINUTE_MS = 60_000

export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { directory, model, logger } = options
  // What people say in here is nobody else's business.
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const opened: { close(): Promise<unknown> }[] = []
  const keep = <T extends { close(): Promise<unknown> }>(resource: T): T => {
    opened.unshift(resource)
    return resource
  }
  try {
    const journal = keep(await RunJournal.open({ directory: join(directory, 'journal'), logger }))
    const sessions = keep(
      await SessionStore.open({
        directory: join(directory, 'sessions'),
        journal,
        logger,
        // The store is locked by this process: a run that it did not begin cannot be alive.
        recovery: { graceMs: 0 },
      }),
    )
    const memory = keep(await options.openMemory(directory))
    const lifecycle = keep(
      await MemoryLifecycle.open({
        // On a thread of its own: while a slow disk syncs, answers go on streaming.
        ledger: sqliteLedger({ path: join(directory, 'ledger.sqlite'), worker: true, logger }),
        // After a restart the owner of a turn is gone: an agent with the same identity stands in for it.
        revive: ({ sessionId, agentId }) => {
          const agent = memory.agent(sessionId)
          return agentId === undefined || agent.agentId === agentId ? agent : undefined
        },
        // A chat that is never left is learned from as well.
        boundaries: { idleMs: 5 * MINUTE_MS, maxTurns: 50 },
        logger,
      }),
    )
    const pool = new AgentPool({ lifecycle, create: (sessionId) => memory.agent(sessionId), max: LIVE_AGENTS, logger })
    const tools = [calculator, clock, ...memory.tools()]
    const turns = new Turns({ sessions, journal, lifecycle, pool, memory, model, tools, logger })
    await journal.prune({ maxAgeMs: JOURNAL_DAYS * 24 * 60 * MINUTE_MS })
    return { sessions, journal, lifecycle, pool, memory, model, turns, logger }
  } catch (error) {
    for (const resource of opened) await resource.close()
    throw error
  }
}

/** Without a drain: for tests, and for a start that failed. `start` closes in order. */
export async function closeGateway({ turns, pool, lifecycle, memory, sessions, journal }: Gateway): Promise<void> {
  await turns.interrupt()
  await pool.close({ signal: AbortSignal.abort() })
  await lifecycle.close()
  await memory.close()
  await sessions.close()
  await journal.close()
}
