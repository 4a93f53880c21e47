import { TidemarkError } from '../base/errors.js'

/** Longer than any turn should be; beyond it a ledger's row and a provider's request fail in less friendly ways. */
const LONGEST_TURN = 64 * 1024 * 1024

/** Messages are kept as JSON, so what a provider gets is the same whichever ledger kept it. */
export function encodeMessages(messages: readonly unknown[]): string {
  if (!Array.isArray(messages)) throw new TypeError('messages must be an array of values that survive JSON.')
  let json: string
  try {
    json = JSON.stringify(messages)
  } catch (error) {
    throw new TypeError('messages must survive JSON: no BigInt, no cycle, no toJSON that throws.', { cause: error })
  }
  if (json.length > LONGEST_TURN) {
    throw new TidemarkError(
      'TURN_TOO_LARGE',
      `A turn's messages may take ${LONGEST_TURN} characters as JSON, but these take ${json.length}. ` +
        'Mark the turn without messages and give a transcript source instead.',
      { details: { length: json.length, longest: LONGEST_TURN } },
    )
  }
  return json
}
