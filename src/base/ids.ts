const LONGEST_ID = 512
const CONTROL_CHARACTER = /\p{Cc}/u

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
  if (CONTROL_CHARACTER.test(id)) throw new TypeError(`${name} must not contain control characters.`)
  if (!isWellFormed(id)) throw new TypeError(`${name} must be well-formed UTF-16, but contains a lone surrogate.`)
  return id
}

const LONE_SURROGATE = /\p{Surrogate}/u

function isWellFormed(text: string): boolean {
  return !LONE_SURROGATE.test(text)
}

function describeType(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'an array' : `of type ${typeof value}`
}
