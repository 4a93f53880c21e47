import { TidemarkError } from '../base/errors.js'
import { isStorable } from '../base/text.js'
import type { SettleAnswer } from './agent.js'

export type ReadAnswer =
  | { readonly kind: 'committed' }
  | { readonly kind: 'accepted'; readonly receipt: string }
  | { readonly kind: 'invalid'; readonly error: TidemarkError }

/** What a provider said to a commit (C11). Returning nothing means committed; anything unknown is a failed attempt. */
export function readCommitAnswer(value: unknown): ReadAnswer {
  if (value === undefined) return { kind: 'committed' }
  const { status, receipt } = fieldsOf(value)
  if (status === 'committed' || status === 'nothing') return { kind: 'committed' }
  if (status === 'accepted' && isReceipt(receipt)) return { kind: 'accepted', receipt }
  return {
    kind: 'invalid',
    error: new TidemarkError(
      'COMMIT_ANSWER_INVALID',
      'commitMemorySession must return nothing, { status: "committed" }, { status: "nothing" } or ' +
        `{ status: "accepted", receipt }, but returned ${describeAnswer(value)}.`,
    ),
  }
}

/** What a provider said of a receipt; `undefined` for anything unknown, which is asked again. */
export function readSettleAnswer(value: unknown): SettleAnswer | undefined {
  if (value === undefined) return { status: 'committed' }
  const { status, error } = fieldsOf(value)
  if (status === 'committed' || status === 'pending') return { status }
  return status === 'failed' ? { status, error } : undefined
}

/** A receipt is kept until it settles, also over a restart: it has to come back as it was. */
function isReceipt(receipt: unknown): receipt is string {
  return typeof receipt === 'string' && receipt !== '' && isStorable(receipt)
}

function fieldsOf(value: unknown): { status?: unknown; receipt?: unknown; error?: unknown } {
  return typeof value === 'object' && value !== null ? value : {}
}

function describeAnswer(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return `a ${typeof value}`
  const { status, receipt } = fieldsOf(value)
  if (status === 'accepted') return `"accepted" with ${receipt === undefined ? 'no receipt' : describeReceipt(receipt)}`
  return 'an object with another status'
}

function describeReceipt(receipt: unknown): string {
  return typeof receipt === 'string' && receipt !== ''
    ? 'a receipt that contains NUL or half a character'
    : 'a receipt that is not a non-empty string'
}

/** Whether asking again may help: unless the error says it will not. Never throws. */
export function isRetryable(error: unknown): boolean {
  try {
    return (error as { retryable?: unknown } | null | undefined)?.retryable !== false
  } catch {
    return true
  }
}
