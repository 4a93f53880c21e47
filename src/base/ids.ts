const LONGEST_ID = 512
/** Control characters, and surrogates without their other half: storage mangles or merges them. */
const UNSAFE = /[\p{Cc}\p{Surrogate}]/u

/**
 * The door of every call that takes a session id (L1). Nothing given is answered with nothing done: `undefined`. What
 * some storage would mangle or confuse is refused before anything is recorded.
 */
export function checkSessionId(sessionId: unknown): string | undefined {
  if (sessionId === undefined || sessionId === null || sessionId === '') return undefined
  return checkId(sessionId, 'sessionId')
}

export function checkId(id: unknown, name: string): string {
  if (typeof id !== 'string') throw new TypeError(`${name} must be a string, but is ${describeType(id)}.`)
  if (id.length === 0) throw new TypeError(`${name} must not be empty.`)
  if (id.length > LONGEST_ID) {
    throw new TypeError(`${name} must have at most ${LONGEST_ID} UTF-16 units, but has ${id.length}.`)
  }
  if (UNSAFE.test(id)) throw new TypeError(`${name} must not contain control characters or lone surrogates.`)
  return id
}

function describeType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `of type ${typeof value}`
}
