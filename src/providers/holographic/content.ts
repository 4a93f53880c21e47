import { hash } from 'node:crypto'

/** More than this is a document, not a fact. */
export const LONGEST_CONTENT = 16_384

/** The text as it is stored. A NUL would cut it short in SQLite, half a surrogate pair would come back as something else. */
export function cleanContent(content: unknown): string {
  if (typeof content !== 'string') throw new TypeError(`content must be a string, got ${typeof content}`)
  const clean = Buffer.from(content.replaceAll('\0', ' ')).toString().trim()
  if (clean === '') throw new TypeError('content must not be empty')
  if (clean.length > LONGEST_CONTENT) {
    throw new TypeError(
      `content must have at most ${LONGEST_CONTENT} characters, got ${clean.length}: store statements, not documents`,
    )
  }
  return clean
}

export function cleanCategory(category: unknown): string {
  if (typeof category !== 'string' || category.trim() === '' || category.length > 80 || category.includes('\0')) {
    throw new TypeError(
      'category must be a word of at most 80 characters, for example user_pref, project, tool or general',
    )
  }
  return category.trim()
}

export function cleanTags(tags: unknown): string {
  if (!Array.isArray(tags) || tags.some((tag) => typeof tag !== 'string'))
    throw new TypeError('tags must be an array of strings')
  return (tags as string[])
    .flatMap((tag) => tag.replaceAll('\0', ' ').split(','))
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '')
    .join(',')
}

/**
 * Under what a deleted fact is remembered. A hash, because whoever deletes a fact wants its text gone; of a text without
 * case, outer punctuation and spacing, because "I like tea." is the fact that was deleted as "I like  tea".
 */
export function deletionKey(content: string): string {
  const plain = content.normalize('NFKC').toLowerCase().replace(/\s+/gu, ' ')
  const words = plain.match(/[\p{L}\p{N}](?:.*[\p{L}\p{M}\p{N}])?/u)?.[0]
  return hash('sha256', words ?? plain, 'hex')
}

/** The plugin's timestamps: UTC, to the second. */
export function timestamp(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19).replace('T', ' ')
}

/** Days since; undefined if the text is no time. */
export function ageInDays(touchedAt: string, nowMs: number): number | undefined {
  const iso = touchedAt.trim().replace(' ', 'T')
  const then = Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(iso) ? iso : `${iso}Z`)
  return Number.isNaN(then) ? undefined : (nowMs - then) / 86_400_000
}
