const ID = /^[A-Za-z0-9_.:@-]{1,128}$/
const DEVICE = /^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)/
const SUFFIX = '.jsonl'

/** Refuses an id before any path is built from it. */
export function assertId(id: unknown, what: string): asserts id is string {
  if (typeof id !== 'string') throw new TypeError(`Expected ${what} to be a string, found ${typeof id}.`)
  if (!ID.test(id) || id === '.' || id === '..') {
    throw new TypeError(
      `Expected ${what} to be 1 to 128 characters of A-Z a-z 0-9 _ . : @ - and neither "." nor "..", found ${JSON.stringify(id.slice(0, 140))}.`,
    )
  }
}

/**
 * Ids that differ only in case must not meet in one file where the file system ignores case. So a name is the id in
 * lower case, with the places of its capitals as a number behind `=`, a character that no id contains:
 * `Alice` becomes `alice=1`, `alice` stays `alice`. A colon becomes `+`; what Windows would take for a device
 * (`con`) gets a `=` in front, and a dot at the end, which it drops, gets one behind.
 */
export function nameOfId(id: string): string {
  let capitals = 0n
  for (let at = 0; at < id.length; at++) {
    const code = id.charCodeAt(at)
    if (code >= 65 && code <= 90) capitals |= 1n << BigInt(at)
  }
  const plain = id.toLowerCase().replaceAll(':', '+')
  const guarded = DEVICE.test(plain) ? `=${plain}` : plain
  if (capitals > 0n) return `${guarded}=${capitals.toString(36)}`
  return guarded.endsWith('.') ? `${guarded}=` : guarded
}

/** The id behind a name, or `undefined` for a name that `nameOfId` does not give. */
export function idOfName(name: string): string | undefined {
  const match = /^=?([a-z0-9_.+@-]{1,128})(?:=([0-9a-z]*))?$/.exec(name)
  if (match?.[1] === undefined) return undefined
  const capitals = parseBase36(match[2] ?? '')
  const characters = Array.from(match[1].replaceAll('+', ':'), (character, at) =>
    (capitals >> BigInt(at)) & 1n ? character.toUpperCase() : character,
  )
  const id = characters.join('')
  return ID.test(id) && nameOfId(id) === name ? id : undefined
}

export const fileOfId = (id: string): string => nameOfId(id) + SUFFIX

export function idOfFile(file: string): string | undefined {
  return file.endsWith(SUFFIX) ? idOfName(file.slice(0, -SUFFIX.length)) : undefined
}

function parseBase36(digits: string): bigint {
  let value = 0n
  for (const digit of digits) value = value * 36n + BigInt(parseInt(digit, 36))
  return value
}
