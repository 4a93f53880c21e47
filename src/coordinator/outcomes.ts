import { TidemarkError } from '../base/errors.js'
import type { ClaimedSegment, ClaimName, ClaimResult } from '../core/index.js'
import type { MemoryCommit } from './agent.js'
import type { Settings } from './options.js'
import type { CommitOutcome } from './reports.js'
import { readTurns } from './turns.js'

/** As the caller sees it, and `waiting`: the oldest segment is in backoff. */
export type StepOutcome = CommitOutcome | { readonly status: 'waiting'; readonly until: number }

/** What a provider is told of the segment it is offered, or asked about. */
export function commitOf(
  settings: Settings,
  sessionId: string,
  segment: Pick<ClaimedSegment, 'from' | 'to' | 'gaps' | 'attempts' | 'reason' | 'key'>,
  call: { readonly signal: AbortSignal },
): MemoryCommit {
  const { from, to, attempts: attempt, reason, key: idempotencyKey } = segment
  return {
    sessionId,
    from,
    to,
    attempt,
    reason,
    idempotencyKey,
    get signal() {
      return call.signal
    },
    turns: () => readTurns(settings, sessionId, segment),
  }
}

export function nameOf({ key, token }: ClaimedSegment): ClaimName {
  return { key, token }
}

export function outcomeOf(result: Exclude<ClaimResult, { status: 'claimed' }>): StepOutcome {
  switch (result.status) {
    case 'clean':
    case 'busy':
      return result
    case 'waiting':
      return { status: 'waiting', until: result.until }
    case 'unowned': {
      const { from, to, owner } = result.segment
      return { status: 'unowned', from, to, ...(owner === undefined ? {} : { agentId: owner }) }
    }
    case 'parked': {
      const { from, to, attempts: attempt, error } = result.segment
      return { status: 'parked', from, to, attempt, error }
    }
    default:
      return result satisfies never
  }
}

export function abandonedError(sessionId: string, settings: Settings): TidemarkError {
  const { commitTimeoutMs, abandonGraceMs } = settings
  return new TidemarkError(
    'COMMIT_ABANDONED',
    `The provider did not return within ${commitTimeoutMs} ms, nor within ${abandonGraceMs} ms after its signal was ` +
      'aborted. If it is merely slow, raise commitTimeoutMs; if it ignores the signal, pass it on to its requests.',
    { details: { sessionId, commitTimeoutMs, abandonGraceMs } },
  )
}
