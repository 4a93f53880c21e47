import type { CompletedTurn, MemoryAgent, MemoryCommit } from '../coordinator/agent.js'

/** What the agent does with one commit or one question about a receipt. What it returns is what the caller gets. */
export type Step = (commit: MemoryCommit) => unknown

/** A step that waits until the test lets it go on. */
export interface Gate {
  readonly step: Step
  /** Resolves when the agent has been called. */
  readonly entered: Promise<MemoryCommit>
  /** Lets the call return this answer (nothing means committed). */
  open(answer?: unknown): void
  fail(error: unknown): void
}

export interface SeenCommit {
  readonly sessionId: string
  readonly from: number
  readonly to: number
  readonly attempt: number
  readonly reason: string
  readonly idempotencyKey: string
  readonly signal: AbortSignal
  /** Set when the agent reads turns. */
  turns: CompletedTurn[] | undefined
  /** Commits of the same session that were under way when this one began. */
  readonly alongside: number
}

export interface ScriptedAgent extends MemoryAgent {
  /** What to do next, oldest first; when it is empty, `otherwise` is done. */
  readonly script: Step[]
  readonly settleScript: Step[]
  otherwise: Step
  readonly seen: SeenCommit[]
  readonly settled: { readonly receipt: string; readonly idempotencyKey: string }[]
  /** How often it was closed. */
  closes: number
}

/** Ready-made steps: providers that work, fail, hang and lie. */
export const steps = Object.freeze({
  commit: (): Step => () => undefined,
  nothing: (): Step => () => ({ status: 'nothing' }),
  accept:
    (receipt: string): Step =>
    () => ({ status: 'accepted', receipt }),
  /** Any value, sensible or not. */
  answer:
    (value: unknown): Step =>
    () =>
      value,
  /** Throws before the first await. */
  throwAtOnce:
    (error: unknown): Step =>
    () => {
      throw error
    },
  reject:
    (error: unknown): Step =>
    () =>
      Promise.reject(error),
  /** Never settles, whatever the signal says. */
  hang: (): Step => () => new Promise(() => undefined),
  /** Hangs until its signal is aborted, then rejects: a well-behaved slow provider. */
  obey: (): Step => (commit) =>
    new Promise((_resolve, reject) => {
      const stop = (): void => reject(commit.signal.reason as Error)
      if (commit.signal.aborted) stop()
      else commit.signal.addEventListener('abort', stop, { once: true })
    }),
})

export function gate(): Gate {
  let enter: (commit: MemoryCommit) => void = () => undefined
  let open: (answer: unknown) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  const entered = new Promise<MemoryCommit>((resolve) => {
    enter = resolve
  })
  const answer = new Promise<unknown>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  // A gate that fails before anybody passes through it is not an unhandled rejection.
  answer.catch(() => undefined)
  return {
    entered,
    step: (commit) => {
      enter(commit)
      return answer
    },
    open: (value) => open(value),
    fail: (error) => fail(error),
  }
}

/** An agent that does what the test says and remembers what it saw. `cannotSettle` leaves out `settleMemoryCommit`. */
export function scriptedAgent(
  options: {
    readonly agentId?: string
    readonly provider?: string
    readonly readsTurns?: boolean
    readonly cannotSettle?: boolean
    readonly otherwise?: Step
  } = {},
): ScriptedAgent {
  const { agentId, provider, readsTurns = false } = options
  const underWay = new Map<string, number>()
  const count = (sessionId: string, change: number): number => {
    const before = underWay.get(sessionId) ?? 0
    underWay.set(sessionId, before + change)
    return before
  }
  const agent: ScriptedAgent = {
    ...(agentId === undefined ? {} : { agentId }),
    ...(provider === undefined ? {} : { provider }),
    script: [],
    settleScript: [],
    otherwise: options.otherwise ?? steps.commit(),
    seen: [],
    settled: [],
    closes: 0,
    commitMemorySession(commit) {
      const { sessionId, from, to, attempt, reason, idempotencyKey, signal } = commit
      const alongside = count(sessionId, 1)
      const seen: SeenCommit = {
        sessionId,
        from,
        to,
        attempt,
        reason,
        idempotencyKey,
        signal,
        alongside,
        turns: undefined,
      }
      agent.seen.push(seen)
      const step = agent.script.shift() ?? agent.otherwise
      const run = (): unknown => step(commit)
      if (readsTurns) {
        return readAll(commit)
          .then((turns) => {
            seen.turns = turns
            return run()
          })
          .finally(() => count(sessionId, -1)) as ReturnType<MemoryAgent['commitMemorySession']>
      }
      let value: unknown
      try {
        value = run()
      } catch (error) {
        count(sessionId, -1)
        throw error
      }
      if (value instanceof Promise) {
        return value.finally(() => count(sessionId, -1)) as ReturnType<MemoryAgent['commitMemorySession']>
      }
      count(sessionId, -1)
      return value as ReturnType<MemoryAgent['commitMemorySession']>
    },
    close() {
      agent.closes += 1
    },
  }
  if (options.cannotSettle !== true) {
    agent.settleMemoryCommit = (receipt, commit) => {
      agent.settled.push({ receipt, idempotencyKey: commit.idempotencyKey })
      const step = agent.settleScript.shift() ?? steps.commit()
      return step(commit) as ReturnType<NonNullable<MemoryAgent['settleMemoryCommit']>>
    }
  }
  return agent
}

async function readAll(commit: MemoryCommit): Promise<CompletedTurn[]> {
  const turns: CompletedTurn[] = []
  for await (const turn of commit.turns()) turns.push(turn)
  return turns
}
