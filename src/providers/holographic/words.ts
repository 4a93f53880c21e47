import { fold } from './fold.js'
import { STOP_WORDS } from './stop-words.js'

/**
 * What the index holds of a text. Scripts with spaces give words; a compound such as `daemon-reexec` or `node.js` gives
 * its parts. Scripts without spaces (and Korean, whose particles stick to the noun) give runs of two and three
 * characters, and single ones for Han, where one character is often a word.
 */
const PART = /[\p{L}\p{N}\p{M}]+/gu
const UNSPACED =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{scx=Tibetan}]+/gu
const HAN = /\p{sc=Han}/u

/** `c++`, `c#` and `f#` would else all be one letter. */
function spellOut(text: string): string {
  return text.replace(/(?<![\p{L}\p{N}])(\p{L})(\+\+|#)/gu, (_, letter: string, sign: string) =>
    sign === '#' ? `${letter}sharp` : `${letter}plusplus`,
  )
}

/** The words of a text and its unspaced runs, in order. */
export function parts(text: string): { words: string[]; runs: string[] } {
  const words: string[] = []
  const runs: string[] = []
  for (const [part] of spellOut(fold(text)).matchAll(PART)) {
    runs.push(...(part.match(UNSPACED) ?? []))
    words.push(...part.split(UNSPACED).filter((word) => word !== ''))
  }
  return { words, runs }
}

function grams(run: string, length: number): string[] {
  const characters = Array.from(run)
  return characters.slice(0, characters.length - length + 1).map((_, i) => characters.slice(i, i + length).join(''))
}

/** Every term under which a text can be found. */
export function indexTerms(text: string): Set<string> {
  const { words, runs } = parts(text)
  const terms = new Set(words)
  for (const run of runs) {
    for (const length of [2, 3]) for (const gram of grams(run, length)) terms.add(gram)
    for (const character of run) if (HAN.test(character) || run.length === 1) terms.add(character)
  }
  return terms
}

/** A category as a term of its own; it begins with a private character, so no text can contain it. */
export function categoryTerm(category: string): string {
  return `\u{e000}${Buffer.from(category).toString('hex')}`
}

/** A question of this many different terms is specific enough; a pasted page must not become a thousand look-ups. */
const MOST_QUERY_TERMS = 24

/** What to look up for a query: no idle words, unless there is nothing else. */
export function queryTerms(query: string): string[] {
  const { words, runs } = parts(query)
  const telling = words.filter((word) => !STOP_WORDS.has(word))
  const terms = new Set(telling)
  for (const run of runs) {
    const length = Array.from(run).length
    if (length === 1) terms.add(run)
    for (const gram of [...grams(run, 3), ...grams(run, 2)]) if (!STOP_WORDS.has(gram)) terms.add(gram)
  }
  const chosen = terms.size > 0 ? terms : new Set([...words, ...runs.flatMap((run) => grams(run, 2))])
  return [...chosen].slice(0, MOST_QUERY_TERMS)
}

const SEGMENTER = new Intl.Segmenter('und', { granularity: 'word' })

/** Dictionary words of a run without blanks. */
export function segmentWords(run: string): string[] {
  return Array.from(SEGMENTER.segment(run)).flatMap(({ segment, isWordLike }) => (isWordLike === true ? [segment] : []))
}

/** All words of a text, in order for each kind of script: what two facts are compared by. */
export function comparedTerms(text: string): string[] {
  const { words, runs } = parts(text)
  return [...words, ...runs.flatMap(segmentWords)]
}

export function jaccard(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0
  for (const term of a) if (b.has(term)) shared++
  return shared === 0 ? 0 : shared / (a.size + b.size - shared)
}
