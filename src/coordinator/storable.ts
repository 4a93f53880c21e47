/** Control characters and surrogates without their other half: storage cuts or replaces them, and reads back something else. */
const UNSTORABLE = /[^\P{Cc}\t\n\r]|\p{Surrogate}/u
const EVERY_UNSTORABLE = new RegExp(UNSTORABLE, 'gu')

/** Whether every ledger gives the text back as it is. */
export function isStorable(text: string): boolean {
  return !UNSTORABLE.test(text)
}

export function makeStorable(text: string): string {
  return text.replace(EVERY_UNSTORABLE, '\ufffd')
}
