/** Surrogates without their other half, and NUL: storage changes a text that holds one, or ends it there. */
const LONE_SURROGATE = /\p{Surrogate}/u

/** Whether a text comes back from every ledger as it was given. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && !LONE_SURROGATE.test(text)
}

/** The same text for people, without what cannot be stored. */
export function makeStorable(text: string): string {
  return isStorable(text) ? text : Buffer.from(text.replaceAll('\0', '\ufffd')).toString()
}
