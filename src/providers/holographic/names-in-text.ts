/** A name found in a text, and where. */
export interface NameSpan {
  readonly text: string
  readonly start: number
  readonly end: number
}

interface Token extends NameSpan {
  readonly kind: 'capitalised' | 'identifier' | 'particle' | 'word'
}

// Every pattern here is either anchored to a token of bounded length or free of overlapping choices, so that a hostile
// text costs no more time than its length.
const TOKEN = /[\p{L}\p{M}\p{N}_]+(?:[-.'’&][\p{L}\p{M}\p{N}_]+)*(?:\+\+|#)?/gu
const LONGEST_TOKEN = 80
const MOST_WORDS = 6
const MOST_PARTICLES = 2
const PARTICLES = new Set(
  'van von vom zu de del della der den da di do dos du la le el al bin ibn of y и де ван фон'.split(' '),
)
const ALSO_KNOWN_AS =
  /(?<![\p{L}\p{N}])(?:aka|AKA|a\.k\.a\.|also known as|auch bekannt als|genannt|alias|también conocido como|también conocida como|aussi appelé|aussi appelée|также известный как|также известная как|он же|она же|γνωστός ως|γνωστή ως)(?![\p{L}\p{N}])/gu

/** Capitalised phrases ("Ludwig van Beethoven", "Postgres") and identifiers ("node.js", "k8s", "snake_case"). */
export function findNames(text: string): NameSpan[] {
  return phrases(tokensOf(text)).filter(({ kind }) => kind === 'capitalised' || kind === 'identifier')
}

/** "X aka Y": the phrase or word on each side of the marker. */
export function findAliases(text: string): { name: NameSpan; alias: NameSpan }[] {
  const spans = phrases(tokensOf(text.replace(ALSO_KNOWN_AS, (marker) => '\n'.repeat(marker.length))))
  return [...text.matchAll(ALSO_KNOWN_AS)].flatMap((marker) => {
    const from = marker.index
    const to = from + marker[0].length
    const name = spans.findLast(({ end }) => end <= from)
    const alias = spans.find(({ start }) => start >= to)
    const adjacent =
      name !== undefined &&
      alias !== undefined &&
      /^[\s,(]*$/u.test(text.slice(name.end, from)) &&
      /^[\s"“„«'‘]*$/u.test(text.slice(to, alias.start))
    return adjacent ? [{ name, alias }] : []
  })
}

function tokensOf(text: string): Token[] {
  return [...text.matchAll(TOKEN)]
    .filter(([token]) => token.length <= LONGEST_TOKEN)
    .map((match) => ({
      text: match[0],
      start: match.index,
      end: match.index + match[0].length,
      kind: kindOf(match[0]),
    }))
}

function kindOf(token: string): Token['kind'] {
  if (token.includes('_')) return 'identifier'
  if (/^\p{Lu}/u.test(token)) return 'capitalised'
  if (PARTICLES.has(token)) return 'particle'
  const isIdentifier =
    /^\p{Ll}[\p{Ll}\p{N}]*\p{Lu}/u.test(token) ||
    /^\p{L}[^.]*(?:\.[\p{L}\p{N}-]{2,})+$/u.test(token) ||
    /^\p{L}.*\p{N}/u.test(token)
  return isIdentifier ? 'identifier' : 'word'
}

/** Joins capitalised neighbours, over particles too, into one span. Only blanks may stand between them. */
function phrases(tokens: readonly Token[]): Token[] {
  const joined: Token[] = []
  for (let i = 0; i < tokens.length; i++) {
    const first = tokens[i]
    if (first === undefined) break
    let last = i
    let words = 1
    for (let next = i + 1; first.kind === 'capitalised' && words < MOST_WORDS && next < tokens.length; next++) {
      const token = tokens[next]
      const before = tokens[next - 1]
      if (token === undefined || before === undefined || token.start - before.end !== 1) break
      if (token.kind === 'particle' && next - last <= MOST_PARTICLES) continue
      if (token.kind !== 'capitalised') break
      last = next
      words++
    }
    const tail = tokens[last] ?? first
    joined.push({
      ...first,
      end: tail.end,
      text: tokens
        .slice(i, last + 1)
        .map(({ text }) => text)
        .join(' '),
    })
    i = last
  }
  return joined
}
