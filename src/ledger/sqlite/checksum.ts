import { crc32 } from 'node:zlib'

/**
 * SQLite checks the structure of its file, not the bytes of a row. Every row of the ledger therefore carries a
 * checksum of its own: a flipped bit is an error, never a wrong number or a wrong text.
 */
export function hashText(text: string | undefined): number {
  // A text that is missing and a text that is empty must differ.
  return text === undefined ? 0x5bd1e995 : crc32(text)
}

/** Folds a number into a hash. For a given hash no two 32-bit numbers fold to the same value. */
export function mix(hash: number, value: number | undefined): number {
  const number = value ?? -1
  let mixed = Math.imul(hash ^ (number | 0), 0x85ebca6b)
  mixed ^= mixed >>> 13
  mixed = Math.imul(mixed ^ ((number / 0x1_0000_0000) | 0), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
