import { type ChatMessage, RECALLED } from './model.js'

export type Step =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool'; readonly name: string; readonly args: object }

const HIGHEST_COUNT = 500

/** What to do next in a conversation: call a tool, or say something. Rules, the first that fits; no state. */
export function planAnswer(messages: readonly ChatMessage[]): Step {
  const at = messages.findLastIndex(({ role }) => role === 'user')
  const question = messages[at]?.content ?? ''
  const results = messages.slice(at + 1).flatMap((message) => (message.role === 'tool' ? [message.content] : []))
  const expression = findExpression(question)
  if (results.length === 0) {
    if (expression !== undefined) return { type: 'tool', name: 'calculator', args: { expression } }
    if (/\b(?:what|which|tell)\b.*\b(?:time|date|day)\b(?!\s+\w+ing)/i.test(question) && !/\bmy\b/i.test(question)) {
      return { type: 'tool', name: 'clock', args: {} }
    }
  }
  const earlier = messages.slice(0, at).flatMap(({ role, content }) => (role === 'user' ? [content] : []))
  const parts = results.map((result) => (expression === undefined ? `It is ${result}.` : `${expression} = ${result}.`))
  const count = /\bcount\b.*?\bto\s+(\d{1,6})\b/i.exec(question)?.[1]
  if (count !== undefined) parts.push(countTo(Math.min(Number(count), HIGHEST_COUNT)))
  if (parts.length === 0) parts.push(reply(question, recalledFacts(messages), earlier))
  return { type: 'text', text: parts.join(' ') }
}

function reply(question: string, facts: readonly string[], earlier: readonly string[]): string {
  if (/\b(?:help|what can you do)\b/i.test(question)) return HELP
  if (/\bstory\b/i.test(question)) return STORY
  if (/\b(?:about me|who am i|remember of me|know of me)\b/i.test(question)) return aboutUser(facts, earlier)
  if (/\b(?:summar\w+|recap|what (?:did|have) (?:i|we) (?:say|said|talk\w*|discuss\w*))\b/i.test(question)) {
    return earlier.length === 0 ? 'Nothing yet in this chat.' : `In this chat you said:\n${bullets(earlier)}`
  }
  const isQuestion =
    /[?？]\s*$/.test(question) || /^\s*(?:who|what|where|when|why|which|how|do|does|is|are|can)\b/i.test(question)
  if (isQuestion) return lookUp(question, facts, earlier)
  if (/\b(?:i|i'm|i’m|my|we|our|remember|note)\b/i.test(question)) {
    return `Noted: ${turnAround(question)}\n\nStart a new chat and ask me about it: by then it is in memory.`
  }
  if (/^\s*(?:hi|hello|hey|good (?:morning|evening|day))\b/i.test(question)) {
    return facts.length === 0 ? `Hello! ${HELP}` : `Hello again! I remember:\n${bullets(facts)}`
  }
  return `You said: ${question.trim()}\n\nI am the built-in model and answer by simple rules. ${HELP}`
}

/** The fact, or the earlier words of the user, that share most words with the question; memory wins a draw. */
function lookUp(question: string, facts: readonly string[], earlier: readonly string[]): string {
  const asked = wordsOf(question)
  const score = (text: string): number => [...wordsOf(text)].filter((word) => asked.has(word)).length
  const known = [
    ...facts.map((text) => ({ text, from: 'from memory' })),
    ...earlier.filter((text) => !/[?？]\s*$/.test(text)).map((text) => ({ text, from: 'earlier in this chat' })),
  ].map((entry) => ({ ...entry, score: score(entry.text) }))
  const best = known.reduce((a, b) => (b.score > a.score ? b : a), { text: '', from: '', score: 0 })
  if (best.score === 0) return 'I do not know that yet. Tell me, start a new chat, and ask again.'
  return `You told me: “${best.text.trim()}” (${best.from}).`
}

function aboutUser(facts: readonly string[], earlier: readonly string[]): string {
  if (facts.length > 0) return `I remember:\n${bullets(facts)}`
  return earlier.length === 0
    ? 'Nothing yet. Tell me something about you, then start a new chat.'
    : `Nothing in memory yet, but in this chat you said:\n${bullets(earlier)}`
}

/** The lines that stand below the heading which `turns` puts above recalled facts. */
function recalledFacts(messages: readonly ChatMessage[]): string[] {
  const block = messages.find(({ role, content }) => role === 'system' && content.includes(RECALLED))?.content ?? ''
  return block.split('\n').flatMap((line) => (line.startsWith('- ') ? [line.slice(2)] : []))
}

/** The longest stretch that reads like arithmetic; a date is none. */
function findExpression(text: string): string | undefined {
  const plain = text.replaceAll('×', '*').replaceAll('÷', '/').replaceAll('−', '-')
  return [...plain.matchAll(/[-(\d][\d\s.()+\-*/%^]*[\d)]/g)]
    .map(([match]) => match.trim())
    .filter((match) => /[\d)]\s*[-+*/%^]\s*[-(\d]/.test(match) && !/^\d{4}-\d{2}-\d{2}$/.test(match))
    .sort((a, b) => b.length - a.length)[0]
}

const STOP_WORDS = new Set(
  'a about am an and are at be been can could did do does for from had has have how i in is it me mine my of on or our that the their this to us was we were what when where which who why will with would you your'.split(
    ' ',
  ),
)

function wordsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return new Set(words.filter((word) => !STOP_WORDS.has(word)).map((word) => word.replace(/(?<=\p{L}{3})s$/u, '')))
}

const TURNED: Readonly<Record<string, string>> = {
  ...{ i: 'you', "i'm": 'you are', 'i’m': 'you are', "i've": 'you have', 'i’ve': 'you have', am: 'are' },
  ...{ my: 'your', me: 'you', mine: 'yours', myself: 'yourself', we: 'you', our: 'your', us: 'you' },
}

function turnAround(text: string): string {
  const said = text.trim().replace(/[\p{L}]+(?:['’]\p{L}+)?/gu, (word) => TURNED[word.toLowerCase()] ?? word)
  const sentences = said.replace(/(?<=[.!?]\s+)\p{Ll}/gu, (letter) => letter.toUpperCase())
  return /[.!…]$/.test(sentences) ? sentences : `${sentences}.`
}

function countTo(last: number): string {
  return Array.from({ length: last }, (_, at) => at + 1).join(' ')
}

function bullets(lines: readonly string[]): string {
  return lines.map((line) => `• ${line.trim()}`).join('\n')
}

const HELP =
  'Try: tell me where you live, start a new chat and ask; “what is 17 * 23”; “what time is it”; ' +
  '“tell me a story slowly” and cancel it, or kill the server meanwhile.'

const STORY =
  'At low tide a keeper drew a line on the harbour wall, where the highest water of the year had left its mark. ' +
  'Below it he wrote the day, and went home. The next morning the sea was gone far out, and people laughed: what is a ' +
  'line on a dry wall good for? In autumn the storm came. It took the pier, two boats and the lamp of the mole, and it ' +
  'would have taken the grain as well, had it not been stored a hand above the line. When the water fell, the mark was ' +
  'still there, and a little above it stood a second one. The keeper wrote the new day beside it. Nothing that had once ' +
  'been reached, he said, should have to be learned twice.'
