import type { SavedJournal } from './journal-files.js'

export interface Retention {
  readonly maxAgeMs?: number
  readonly maxBytes?: number
}

/** Which journals go: those past the age, then the oldest until the rest fits. Only saved ones are ever offered. */
export function chooseExpired(
  saved: readonly SavedJournal[],
  totalBytes: number,
  now: number,
  { maxAgeMs = Infinity, maxBytes = Infinity }: Retention,
): SavedJournal[] {
  let left = totalBytes
  return [...saved]
    .sort((a, b) => a.changedAt - b.changedAt)
    .filter((journal) => {
      if (now - journal.changedAt < maxAgeMs && left <= maxBytes) return false
      left -= journal.bytes
      return true
    })
}
