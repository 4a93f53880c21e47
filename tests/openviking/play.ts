import { randomUUID } from 'node:crypto'
import type { CompletedTurn, MemoryAgent, MemoryCommit } from '../../src/coordinator/agent.js'
import { makeCommit } from './turns.js'
import { until } from './until.js'

/** The settle deadline of the driver: a segment that stays pending is parked with its receipt. */
const LOOKS = 40

export interface Played {
  readonly outcome: 'committed' | 'nothing' | 'parked' | 'unsettled'
  readonly keys: readonly string[]
  readonly attempts: number
  readonly errors: readonly unknown[]
}

export interface PlayOptions {
  readonly attempts?: number
  readonly key?: string
  /** After each failed attempt and each settlement that is not over. */
  readonly between?: () => void | Promise<void>
}

/**
 * The coordinator's part, as short as its rules allow: the same key for every attempt, a new one only after a
 * settlement that certainly failed; `retryable: false` parks, and so do too many attempts.
 */
export async function play(
  agent: MemoryAgent,
  turns: readonly CompletedTurn[],
  options: PlayOptions = {},
): Promise<Played> {
  const keys = [options.key ?? randomUUID()]
  const errors: unknown[] = []
  for (let attempt = 1; attempt <= (options.attempts ?? 8); attempt += 1) {
    const commit = makeCommit(turns, keys.at(-1)!, { attempt })
    const ended = (outcome: Played['outcome']): Played => ({ outcome, keys, attempts: attempt, errors })
    try {
      const answer = await agent.commitMemorySession(commit)
      if (answer === undefined || answer.status === 'committed') return ended('committed')
      if (answer.status === 'nothing') return ended('nothing')
      const settled = await settle(agent, answer.receipt, commit, errors, options.between)
      if (settled === 'committed') return ended('committed')
      if (settled === 'unsettled') return ended('unsettled')
      keys.push(randomUUID())
    } catch (error) {
      errors.push(error)
      if ((error as { retryable?: boolean }).retryable === false) return ended('parked')
    }
    await options.between?.()
  }
  return { outcome: 'parked', keys, attempts: options.attempts ?? 8, errors }
}

async function settle(
  agent: MemoryAgent,
  receipt: string,
  commit: MemoryCommit,
  errors: unknown[],
  between?: () => void | Promise<void>,
): Promise<'committed' | 'failed' | 'unsettled'> {
  let outcome: 'committed' | 'failed' | undefined
  let looks = 0
  const ask = async (): Promise<boolean> => {
    try {
      const answer = await agent.settleMemoryCommit!(receipt, commit)
      if (answer === undefined || answer.status !== 'pending') outcome = answer?.status ?? 'committed'
      if (answer?.status === 'failed') errors.push(answer.error)
    } catch (error) {
      errors.push(error)
    }
    looks += 1
    if (outcome === undefined) await between?.()
    return outcome !== undefined || looks >= LOOKS
  }
  await until('the receipt settles', ask)
  return outcome ?? 'unsettled'
}
