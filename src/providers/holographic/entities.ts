import { fold } from './fold.js'
import { findAliases, findNames } from './names-in-text.js'
import { STOP_WORDS } from './stop-words.js'
import { parts, segmentWords } from './words.js'

/** Who and what a fact is about. An alias names something that has a name in the same text. */
export interface FoundEntities {
  readonly names: readonly string[]
  readonly aliases: readonly { readonly name: string; readonly alias: string }[]
}

const MOST_ENTITIES = 16
const LONGEST_NAME = 80
const MOST_NAME_WORDS = 8

/** Quotes must not touch a letter on their outer side: the apostrophes of "it's … he's" open and close nothing. */
const QUOTED = [
  /(?<![\p{L}\p{N}])"([^"\r\n]+)"(?![\p{L}\p{N}])/gu,
  /(?<![\p{L}\p{N}])'([^'\r\n]+)'(?![\p{L}\p{N}])/gu,
  /[“„]([^“”„\r\n]+)[“”]/gu,
  /‘([^‘’\r\n]+)’(?!\p{L})/gu,
  /«([^«»\r\n]+)»/gu,
  /[「『《]([^「」『』《》\r\n]+)[」』》]/gu,
]
const AKA_UNSPACED =
  /([\p{sc=Han}\p{sc=Katakana}ー]{2,8}?)(?:又名|又称|又稱|也叫|亦称|別名|またの名)([\p{sc=Han}\p{sc=Katakana}ー]{2,8})/gu

/** Words of a script without capitals: each may be a name, and nothing in the spelling says which. */
const UNCASED_WORD =
  /[\p{scx=Arab}\p{scx=Hebr}\p{scx=Deva}\p{scx=Beng}\p{scx=Taml}\p{scx=Telu}\p{scx=Geor}\p{scx=Ethi}\p{M}]{3,}/gu
const HANGUL_WORD = /\p{sc=Hangul}{2,}/gu
const HANGUL_PARTICLE = /(?:에서|에게|으로|부터|까지|은|는|이|가|을|를|에|의|로|와|과|도)$/u
const SEGMENTED_RUN =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}]+/gu

/** Title-case words of headings and openers that name nothing on their own. */
const GENERIC = new Set(
  `active current project status user always never often usually sometimes maybe finally first second next today tomorrow yesterday
   hello hey hi ok okay sure thanks thank please remember note add ask avoid call check ensure keep make prefer run see set try use want
   answer question overview update reminder todo plan goal team favorite favourite`.split(/\s+/),
)

/** The one key of a name: case, accents, hyphens, underscores, dots, spaces and a possessive make no difference. */
export function entityKey(name: string): string {
  const { words, runs } = parts(name.replace(/['’]s$/iu, ''))
  return words.length > 0 && runs.length > 0 ? fold(name).trim() : [...words, ...runs].join(' ')
}

export function extractEntities(content: string): FoundEntities {
  let text = content.normalize('NFKC')
  const found = new Map<string, string>()
  const aliases: { name: string; alias: string }[] = []
  const add = (candidate: string): string | undefined => {
    const name = cleanName(candidate)
    const key = name === undefined ? '' : entityKey(name)
    if (name === undefined || key === '') return undefined
    if (!found.has(key) && found.size < MOST_ENTITIES) found.set(key, name)
    return found.get(key)
  }
  const addAlias = (left: string, right: string): void => {
    const name = add(trimIdle(left) ?? left)
    const alias = cleanName(right)
    if (name !== undefined && alias !== undefined && entityKey(alias) !== entityKey(name)) aliases.push({ name, alias })
  }

  // What is quoted or called "also known as" is said outright; what is capitalised inside it is part of it.
  for (const { name, alias } of findAliases(text)) addAlias(name.text, alias.text)
  for (const [, left = '', right = ''] of text.matchAll(AKA_UNSPACED)) addAlias(left, right)
  for (const pattern of QUOTED) {
    text = text.replace(pattern, (span, inner: string) => (add(inner) === undefined ? span : ' | '))
  }
  for (const word of uncasedWords(text)) add(word)
  for (const { text: phrase } of findNames(text.replace(SEGMENTED_RUN, ' | '))) {
    const name = trimIdle(phrase)
    if (name !== undefined) add(name)
  }

  const aliasKeys = new Set(aliases.map(({ alias }) => entityKey(alias)))
  return { names: [...found].filter(([key]) => !aliasKeys.has(key)).map(([, name]) => name), aliases }
}

/** Drops idle words that a sentence or a heading capitalised; undefined if no name is left. */
function trimIdle(phrase: string): string | undefined {
  const words = phrase.split(' ')
  if (/^(?:no|not)$/iu.test(words[0] ?? '')) return undefined
  while (words.length > 0 && isIdle(words[0] ?? '')) words.shift()
  while (words.length > 0 && isIdle(words.at(-1) ?? '')) words.pop()
  return words.every((word) => GENERIC.has(fold(word))) ? undefined : words.join(' ')
}

function isIdle(word: string): boolean {
  return STOP_WORDS.has(fold(word))
}

function cleanName(candidate: string): string | undefined {
  const name = candidate
    .replace(/\s+/gu, ' ')
    .replace(/^[\s,;:!?()[\]{}"“”„«».-]+/u, '')
    .replace(/(?<![\s,;:!?()[\]{}"“”„«».-])[\s,;:!?()[\]{}"“”„«».-]+$/u, '')
    .replace(/['’]s$/iu, '')
  if (name === '' || name.length > LONGEST_NAME || name.split(' ').length > MOST_NAME_WORDS) return undefined
  if (!/[\p{L}\p{N}]/u.test(name) || /^\p{Ll}$/u.test(name) || /^\p{N}+$/u.test(name)) return undefined
  return name
}

function* uncasedWords(text: string): Iterable<string> {
  for (const [run] of text.matchAll(SEGMENTED_RUN)) yield* segmentedNames(run)
  for (const [word] of text.matchAll(HANGUL_WORD)) {
    const noun = word.replace(HANGUL_PARTICLE, '')
    if (Array.from(noun).length >= 2 && !isIdle(word) && !isIdle(noun)) yield noun
  }
  for (const [word] of text.matchAll(UNCASED_WORD)) if (!isIdle(word)) yield word
}

/** Hiragana alone is grammar, and one character is too little to be a name. */
function segmentedNames(run: string): string[] {
  return segmentWords(run).filter((word) => {
    const long = Array.from(word).length >= (/\p{sc=Han}|\p{sc=Katakana}/u.test(word) ? 2 : 3)
    return long && !/^[\p{sc=Hiragana}ー]+$/u.test(word) && !isIdle(word)
  })
}
