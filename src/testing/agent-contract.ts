import assert from 'node:assert/strict'
import type { CommitAnswer, CompletedTurn, MemoryAgent, MemoryCommit, SettleAnswer } from '../coordinator/agent.js'

export interface AgentUnderTest {
  /** A fresh agent for this session, on the same provider each time. */
  agent(sessionId: string): MemoryAgent
  /** How often the provider has learned each generation of a session, if it can tell. */
  learned?(sessionId: string): Promise<ReadonlyMap<number, number>>
  close?(): Promise<void>
}

export interface AgentContractOptions {
  /** The test runner's `it` or `test`. */
  readonly it: (name: string, run: () => Promise<void>) => void
  /** A provider with nothing in it. */
  readonly open: () => Promise<AgentUnderTest>
  /** How often to ask about a receipt before giving up. @default 200 */
  readonly asks?: number
}

/** What the coordinator relies on in every agent. Run it against yours. */
export function agentContract(options: AgentContractOptions): void {
  const { it, asks = 200 } = options
  const using = (run: (subject: AgentUnderTest) => Promise<void>) => async (): Promise<void> => {
    const subject = await options.open()
    try {
      await run(subject)
    } finally {
      await subject.close?.()
    }
  }

  it(
    'commits a segment, or accepts it and settles',
    using(async (subject) => {
      const agent = subject.agent('contract')
      await commitWhole(agent, makeCommit('contract', 1, 3), asks)
      await assertLearned(subject, 'contract', [1, 2, 3])
    }),
  )

  it(
    'learns a segment once when it is offered again under the same key',
    using(async (subject) => {
      const commit = makeCommit('contract', 1, 2)
      await commitWhole(subject.agent('contract'), commit, asks)
      await commitWhole(subject.agent('contract'), { ...commit, attempt: 2 }, asks)
      await assertLearned(subject, 'contract', [1, 2])
    }),
  )

  it(
    'keeps sessions apart, also those with awkward ids',
    using(async (subject) => {
      for (const sessionId of ['a/../b', 'a b', '🌊', 'A', 'a']) {
        await commitWhole(subject.agent(sessionId), makeCommit(sessionId, 1, 1), asks)
      }
      for (const sessionId of ['a/../b', 'a b', '🌊', 'A', 'a']) await assertLearned(subject, sessionId, [1])
    }),
  )

  it(
    'takes segments one after the other',
    using(async (subject) => {
      const agent = subject.agent('contract')
      await commitWhole(agent, makeCommit('contract', 1, 1), asks)
      await commitWhole(agent, makeCommit('contract', 2, 4), asks)
      await assertLearned(subject, 'contract', [1, 2, 3, 4])
    }),
  )

  it(
    'does not fail on a segment without text',
    using(async (subject) => {
      await commitWhole(subject.agent('contract'), { ...makeCommit('contract', 1, 2), turns: noTurns }, asks)
    }),
  )

  it(
    'stops when its signal is aborted before it begins',
    using(async (subject) => {
      const commit = { ...makeCommit('contract', 1, 1), signal: AbortSignal.abort(new Error('stop')) }
      // It may have been done already, or refuse; it must not hang, and must not answer nonsense.
      const answer = await attempt(subject.agent('contract'), commit)
      checkAnswer(answer)
    }),
  )

  it(
    'can be closed twice',
    using(async (subject) => {
      const agent = subject.agent('contract')
      await agent.close?.()
      await agent.close?.()
    }),
  )
}

async function attempt(agent: MemoryAgent, commit: MemoryCommit): Promise<void | CommitAnswer> {
  try {
    return await agent.commitMemorySession(commit)
  } catch {
    return undefined
  }
}

async function commitWhole(agent: MemoryAgent, commit: MemoryCommit, asks: number): Promise<void> {
  const answer = await agent.commitMemorySession(commit)
  checkAnswer(answer)
  if (answer?.status !== 'accepted') return
  assert.equal(typeof agent.settleMemoryCommit, 'function', 'an agent that answers "accepted" must be able to settle')
  for (let ask = 0; ask < asks; ask += 1) {
    const settled: SettleAnswer = (await agent.settleMemoryCommit?.(answer.receipt, commit)) ?? { status: 'committed' }
    if (settled.status === 'committed') return
    assert.equal(settled.status, 'pending', 'a healthy provider settles')
    await new Promise((resolve) => setImmediate(resolve))
  }
  assert.fail(`the receipt did not settle within ${asks} questions`)
}

function checkAnswer(answer: void | CommitAnswer): void {
  if (answer === undefined) return
  assert.ok(['committed', 'nothing', 'accepted'].includes(answer.status), 'the answer has a known status')
  if (answer.status === 'accepted') assert.ok(answer.receipt.length > 0, 'a receipt is not empty')
}

async function assertLearned(
  subject: AgentUnderTest,
  sessionId: string,
  generations: readonly number[],
): Promise<void> {
  if (subject.learned === undefined) return
  const learned = await subject.learned(sessionId)
  assert.deepEqual(
    [...learned].sort(([one], [other]) => one - other),
    generations.map((generation) => [generation, 1]),
    'every turn is learned exactly once',
  )
}

function makeCommit(sessionId: string, from: number, to: number): MemoryCommit {
  return {
    sessionId,
    from,
    to,
    attempt: 1,
    reason: 'manual',
    idempotencyKey: `${sessionId}-${from}-${to}`,
    signal: new AbortController().signal,
    turns: () => makeTurns(sessionId, from, to),
  }
}

async function* makeTurns(sessionId: string, from: number, to: number): AsyncGenerator<CompletedTurn> {
  for (let generation = from; generation <= to; generation += 1) {
    const messages = [
      { role: 'user', content: `I prefer tea number ${generation} in ${sessionId}.` },
      { role: 'assistant', content: 'Noted.' },
    ]
    yield await Promise.resolve({ sessionId, generation, messages, completedAt: 1_700_000_000_000 + generation })
  }
}

async function* noTurns(): AsyncGenerator<CompletedTurn> {
  // Nothing was handed over with these marks, and there is no transcript.
}
