import type { EvictReport, MemoryAgent } from '../../src/index.js'
import { AgentPool, type AgentPoolOptions } from '../../src/pool/index.js'
import { type Gate, gate, type ScriptedAgent, scriptedAgent } from '../../src/testing/index.js'
import { openLifecycle, type Opened } from '../support/lifecycle.js'

export interface OpenedPool extends Opened {
  readonly pool: AgentPool<ScriptedAgent>
  /** Every agent that was created, by session, oldest first. */
  readonly created: Map<string, ScriptedAgent[]>
  /** A turn that is served and recorded. */
  readonly turn: (sessionId: string) => Promise<void>
}

export async function openPool(
  options: Partial<AgentPoolOptions<ScriptedAgent>> & {
    readonly lifecycleOptions?: Parameters<typeof openLifecycle>[0]
  } = {},
): Promise<OpenedPool> {
  const { lifecycleOptions, ...rest } = options
  const opened = await openLifecycle(lifecycleOptions)
  const created = new Map<string, ScriptedAgent[]>()
  const pool = new AgentPool<ScriptedAgent>({
    lifecycle: opened.lifecycle,
    clock: opened.clock,
    max: 2,
    create: (sessionId) => {
      const agent = scriptedAgent()
      created.set(sessionId, [...(created.get(sessionId) ?? []), agent])
      return agent
    },
    ...rest,
  })
  const turn = (sessionId: string): Promise<void> =>
    pool.use(sessionId, async (agent: MemoryAgent) => {
      await opened.lifecycle.markTurnCompleted(sessionId, { agent })
    })
  return { ...opened, pool, created, turn }
}

/** In a pool with room for one: another session pushes this one out, and its provider has been called and is waiting. */
export async function pushOut(
  { turn, created }: OpenedPool,
  sessionId: string,
): Promise<{ readonly agent: ScriptedAgent; readonly slow: Gate }> {
  await turn(sessionId)
  const agent = created.get(sessionId)![0]!
  const slow = gate()
  agent.script.push(slow.step)
  await turn('other')
  await slow.entered
  return { agent, slow }
}

/** Something a test lets go on. */
export interface Latch {
  readonly opened: Promise<void>
  open(): void
}

export function latch(): Latch {
  let open: () => void = () => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

export const CLEAN: EvictReport = { closed: true, clean: true, remaining: [] }
