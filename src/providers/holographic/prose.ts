/** A sentence as it was written, and the same with its quotations blacked out: what others said is no statement. */
export interface Sentence {
  readonly text: string
  readonly masked: string
}

const BLACK = '█'
const FENCE = /^ {0,3}(`{3,}|~{3,})/u
const QUOTATIONS = [
  /`[^`\n]+`/gu,
  /(?<![\p{L}\p{N}])"[^"\n]*"/gu,
  /[“„][^“”„\n]*[“”]/gu,
  /«[^«»\n]*»/gu,
  /[「『][^「」『』\n]*[」』]/gu,
  /(?<![\p{L}\p{N}])'[^'\n]*'(?![\p{L}\p{N}])/gu,
  /‘[^‘’\n]*’(?!\p{L})/gu,
]
/** Where a sentence ends: a full stop needs a blank behind it, a CJK one does not. */
const END = /[.!?…]+(?=["”»’)\]]*(?:\s|$))|[。！？؟।｡]+|\n+/gu
const ABBREVIATION =
  /(?:^|[\s(])(?:e\.g|i\.e|z\.\s?b|d\.\s?h|dr|mr|mrs|ms|prof|st|vs|bzw|ca|approx|no|nr|p\.\s?ej|т\.\s?е|т\.\s?д|\p{Lu})$/iu
const QUESTION = /[?？؟]\s*$/u

/** The statements of a message: no code, no quoted lines, no questions. */
export function sentencesOf(message: string): Sentence[] {
  const prose = withoutBlocks(message.replace(/\r\n?/gu, '\n'))
  let masked = prose
  for (const pattern of QUOTATIONS) {
    masked = masked.replace(
      pattern,
      (span) => span.charAt(0) + BLACK.repeat(Math.max(0, span.length - 2)) + span.slice(-1),
    )
  }
  const sentences: Sentence[] = []
  let from = 0
  const cut = (to: number): void => {
    const raw = prose.slice(from, to)
    const text = trimEdges(raw)
    const start = from + raw.indexOf(text)
    if (text !== '' && !QUESTION.test(raw)) sentences.push({ text, masked: masked.slice(start, start + text.length) })
    from = to
  }
  for (const end of masked.matchAll(END)) {
    if (end[0] === '.' && ABBREVIATION.test(masked.slice(Math.max(from, end.index - 12), end.index))) continue
    cut(end.index + end[0].length)
  }
  cut(prose.length)
  return sentences
}

/** Leaves out fenced and indented code, `<pre>` and `<code>`, and lines that quote somebody (`> …`). */
function withoutBlocks(message: string): string {
  const kept: string[] = []
  let fence: string | undefined
  let afterBlank = true
  let inCode = false
  const untagged = message.replace(/<(pre|code|blockquote)(?:\s[^>]{0,200})?>[\s\S]*?(?:<\/\1>|$)/giu, '\n')
  for (const line of untagged.split('\n')) {
    const mark = FENCE.exec(line)?.[1]
    if (fence !== undefined) {
      // A fence closes with the same sign, at least as often, and nothing behind it.
      if (mark !== undefined && mark.startsWith(fence) && line.trim() === mark) fence = undefined
      continue
    }
    if (mark !== undefined) {
      fence = mark
      kept.push('')
      continue
    }
    const blank = line.trim() === ''
    inCode = /^(?: {4}|\t)/u.test(line) && !blank && (afterBlank || inCode) && !/^\s*(?:[-*•+]|\d+[.)])\s/u.test(line)
    afterBlank = blank
    kept.push(inCode || /^\s{0,3}>/u.test(line) ? '' : line)
  }
  return kept.join('\n')
}

/** List signs before, full stops behind. */
function trimEdges(sentence: string): string {
  return sentence
    .replace(/^\s*(?:(?:[-*•+–]|\d{1,3}[.)]|#{1,6})\s+)?/u, '')
    .trimEnd()
    .replace(/(?<![.!。！।｡…])[.!。！।｡…]+$/u, '')
    .trim()
}
