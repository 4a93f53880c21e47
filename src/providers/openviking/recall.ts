import { isRecord } from './outcome.js'

const OPEN = '<recalled-memory>'
const CLOSE = '</recalled-memory>'

/**
 * What recall found, marked so that it is recognised when it comes back inside a turn: memory that is learned again
 * from its own echo grows stronger with every answer.
 */
export function formatRecalled(result: unknown, limit: number): string {
  const memories = isRecord(result) && Array.isArray(result['memories']) ? (result['memories'] as unknown[]) : []
  const lines = memories
    .map((memory) => (isRecord(memory) && typeof memory['abstract'] === 'string' ? memory['abstract'].trim() : ''))
    .filter((abstract) => abstract !== '')
    .slice(0, limit)
    // A memory that contains the mark must not end the block early.
    .map((abstract) => `- ${abstract.replaceAll('recalled-memory>', 'recalled memory>').replace(/\s*\n\s*/g, ' ')}`)
  return lines.length === 0 ? '' : [OPEN, ...lines, CLOSE].join('\n')
}

/** Whole blocks only: an opening mark that nobody closed is the speaker's own text. One pass, whatever the text. */
export function stripRecalled(text: string): string {
  let kept = ''
  let at = 0
  for (;;) {
    const open = text.indexOf(OPEN, at)
    const close = open < 0 ? -1 : text.indexOf(CLOSE, open)
    if (close < 0) return kept + text.slice(at)
    kept += text.slice(at, open)
    at = close + CLOSE.length
    if (text[at] === '\n') at += 1
  }
}
