import { fold } from './fold.js'
import { entityKey } from './entities.js'
import { STOP_WORDS } from './stop-words.js'
import { comparedTerms } from './words.js'

/** A fact as far as it can contradict another. */
export interface Statement {
  readonly id: number
  readonly entities: readonly string[]
  readonly keys: ReadonlySet<string>
  readonly speaker: boolean
  readonly negated: boolean
  /** The words that say something. */
  readonly words: ReadonlySet<string>
  /** "left = right", "left is right". */
  readonly slot: { readonly left: string; readonly right: string; readonly strong: boolean } | undefined
}

export interface Conflict {
  readonly a: Statement
  readonly b: Statement
  readonly score: number
  readonly entities: string[]
}

/** At least half of what two statements say beside their subject is the same, and yet they differ. */
const LEAST_SCORE = 0.5
const SLOT_SCORE = 0.9
const MOST_DIFFERING_WORDS = 2
const LARGEST_GROUP = 200

const NEGATIONS = new Set(
  `not no never none cannot cant dont doesnt didnt isnt arent wasnt wont without nicht kein keine nie niemals pas jamais ne non nunca ningun nao
   mai не нет никогда ні δεν οχι ποτε لا ليس لم לא नहीं`
    .split(/\s+/)
    .map(fold),
)
const NEGATION_UNSPACED = /从不|從不|没有|沒有|不|没|沒|ません|ない|않|ไม่/gu
/** Pronouns and grammar of scripts without blanks; Hiragana alone is grammar, too. */
const IDLE_UNSPACED =
  /^(?:[\p{sc=Hiragana}ー]+|[我你您他她它们們的了在是有也都很就和私僕俺]+|저|저는|나|나는|제가|내가|ผม|ฉัน|ดิฉัน|เรา|ที่|ใน|และ|ของ|เป็น|อยู่)$/u
const SPEAKER = new Set(
  `i my we our ich mein meine wir unser je j mon ma mes nous notre yo mi mis nosotros eu meu minha io mio mia я мой моя мне меня мы наш
   εγω μου أنا اني אני मैं मेरा मेरी मुझे`
    .split(/\s+/)
    .map(fold),
)
const SPEAKER_UNSPACED = /^(?:我|私|僕|俺|저|나는|내|제|ผม|ฉัน|ดิฉัน)/u
const UNCUT = /\p{scx=Han}|\p{scx=Katakana}|\p{scx=Hangul}|\p{scx=Thai}/u
const ASSIGNED = /^(.{1,200}?)\s*(?:=|->|→)\s*(\S.*)$/su
const COPULA =
  /^(.{1,200}?)(?:\s(?:is|are|was|were|ist|sind|est|sont|es|son|è|sono|é|são|είναι)\s|\s[—–]\s|是|は)\s*(\S.*)$/su

export function asStatement(fact: { id: number; content: string; entities: readonly string[] }): Statement {
  const content = fact.content.replace(/n['’]t(?!\p{L})/gu, ' not')
  const affirmed = content.replace(NEGATION_UNSPACED, '')
  const terms = comparedTerms(affirmed)
  const keys = new Set(fact.entities.map(entityKey))
  const speaker = SPEAKER.has(terms[0] ?? '') || SPEAKER_UNSPACED.test(fact.content)
  // Of the speaker even a named thing is an attribute: "my birthday", where every word may pass for a name.
  const subject = speaker ? [] : [...keys].flatMap((key) => comparedTerms(key))
  return {
    id: fact.id,
    entities: fact.entities,
    keys,
    speaker,
    negated: affirmed !== content || terms.some((term) => NEGATIONS.has(term)),
    words: new Set(terms.filter(isTelling)),
    slot: slotOf(fact.content, new Set(subject)),
  }
}

/** Words of scripts without blanks that are idle in a question ("like", "live in") do say something here. */
function isTelling(term: string): boolean {
  if (NEGATIONS.has(term) || IDLE_UNSPACED.test(term)) return false
  return UNCUT.test(term) || !STOP_WORDS.has(term)
}

/** Compares what shares a subject and a word. Work grows with the pairs that share both, and each group is bounded. */
export function findConflicts(statements: readonly Statement[]): Conflict[] {
  const groups = new Map<string, Statement[]>()
  for (const statement of statements) {
    const subjects = [...statement.keys, ...(statement.speaker ? [''] : [])]
    const topics = [...statement.words, ...(statement.slot === undefined ? [] : [`=${statement.slot.left}`])]
    for (const group of subjects.flatMap((subject) => topics.map((topic) => `${subject}\n${topic}`))) {
      const members = groups.get(group)
      if (members === undefined) groups.set(group, [statement])
      else if (members.length < LARGEST_GROUP) members.push(statement)
    }
  }
  const conflicts = new Map<string, Conflict>()
  for (const members of groups.values()) {
    members.forEach((a, i) => {
      for (const b of members.slice(i + 1)) {
        const pair = `${Math.min(a.id, b.id)}-${Math.max(a.id, b.id)}`
        if (conflicts.has(pair)) continue
        const conflict = compare(a, b)
        if (conflict !== undefined) conflicts.set(pair, conflict)
      }
    })
  }
  return [...conflicts.values()].sort((x, y) => y.score - x.score || y.a.id - x.a.id)
}

export function compare(a: Statement, b: Statement): Conflict | undefined {
  const entities = a.entities.filter((name) => b.keys.has(entityKey(name)))
  if (entities.length === 0 && !(a.speaker && b.speaker)) return undefined
  const score = Math.max(slotScore(a, b), remainderScore(a, b, entities[0]))
  return score >= LEAST_SCORE ? { a, b, score, entities } : undefined
}

function slotScore(a: Statement, b: Statement): number {
  if (a.slot === undefined || b.slot === undefined || a.negated !== b.negated) return 0
  return a.slot.left === b.slot.left && a.slot.right !== b.slot.right && a.slot.strong && b.slot.strong ? SLOT_SCORE : 0
}

/** The subject says nothing about agreement: two facts about Alice always share "Alice". */
function remainderScore(a: Statement, b: Statement, subject: string | undefined): number {
  const named = new Set(comparedTerms(subject ?? ''))
  const [left, right] = [without(a.words, named), without(b.words, named)]
  const same = left.filter((word) => right.some((other) => isSameWord(word, other)))
  const [onlyLeft, onlyRight] = [left.length - same.length, right.length - same.length]
  if (same.length === 0) return 0
  const ratio = same.length / (same.length + Math.max(onlyLeft, onlyRight))
  if (a.negated !== b.negated) return onlyLeft === 0 || onlyRight === 0 ? ratio : 0
  const differs = onlyLeft > 0 && onlyRight > 0 && Math.max(onlyLeft, onlyRight) <= MOST_DIFFERING_WORDS
  return differs ? ratio : 0
}

/** "likes" and "like" are one word; two numbers never are. */
function isSameWord(a: string, b: string): boolean {
  if (a === b) return true
  const [short, long] = a.length < b.length ? [a, b] : [b, a]
  return short.length >= 4 && long.startsWith(short) && long.length - short.length <= 2 && !/\p{N}/u.test(long)
}

function without(words: ReadonlySet<string>, named: ReadonlySet<string>): string[] {
  return [...words].filter((word) => !named.has(word))
}

/** "Alice is tired" and "Alice is tall" agree: a copula needs an attribute on its left, "the editor of Alice is …". */
function slotOf(content: string, subject: ReadonlySet<string>): Statement['slot'] {
  const assigned = ASSIGNED.exec(content)
  const [, left = '', right = ''] = assigned ?? COPULA.exec(content) ?? []
  const leftTerms = comparedTerms(left)
  if (leftTerms.length === 0 || comparedTerms(right).length === 0) return undefined
  const attribute = leftTerms.some((term) => !subject.has(term) && isTelling(term) && !SPEAKER.has(term))
  return { left: leftTerms.join(' '), right: comparedTerms(right).join(' '), strong: assigned !== null || attribute }
}
