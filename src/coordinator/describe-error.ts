import { TidemarkError } from '../base/errors.js'
import { makeStorable } from '../base/text.js'

const LONGEST = 200

/**
 * What may be recorded, logged and shown of an error. Providers quote what they were sent, and keys, in their messages,
 * so a stranger's message is left out; our own messages never hold either. Never throws.
 */
export function describeError(error: unknown): string {
  try {
    if (error instanceof TidemarkError) return clip(`${error.code}: ${error.message}`)
    if (typeof error !== 'object' || error === null) return `thrown ${error === null ? 'null' : typeof error}`
    const { name, code, status } = error as { name?: unknown; code?: unknown; status?: unknown }
    const words = [word(name) ?? 'Error', word(code), word(status)]
    return clip(words.filter((part) => part !== undefined).join(' '))
  } catch {
    return 'an error that cannot be read'
  }
}

/** Identifiers and numbers only: anything longer or with spaces could be text. */
function word(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && /^[A-Za-z0-9_.-]{1,64}$/.test(value) ? value : undefined
}

/** An id in one of our messages may end in the middle of a character. */
function clip(text: string): string {
  return makeStorable(text.length <= LONGEST ? text : `${text.slice(0, LONGEST - 1)}…`)
}
