import type { CompletedTurn } from '../../coordinator/agent.js'
import { sentencesOf } from './prose.js'
import { holdsSecret } from './secrets.js'
import { NO_STATEMENT, STATEMENT_RULES } from './statement-rules.js'
import type { ExtractedFact } from './types.js'

const LONGEST_STATEMENT = 400
/** A pasted log is no conversation; what a person states stands near the beginning. */
const LONGEST_MESSAGE = 20_000
/** How agents mark a summary that stands in for a conversation they cut short: nobody said it. */
const SUMMARY = /\[CONTEXT (?:COMPACTION|SUMMARY)/u

/**
 * The built-in rules: what the user states about themselves and about common work, sentence by sentence. Questions,
 * requests, code, quoted text and anything that looks like a secret are left out.
 */
export function extractStatements(turns: readonly CompletedTurn[]): ExtractedFact[] {
  const facts = new Map<string, ExtractedFact>()
  for (const turn of turns) {
    for (const message of turn.messages) {
      for (const fact of statementsOf(userText(message))) if (!facts.has(fact.content)) facts.set(fact.content, fact)
    }
  }
  return [...facts.values()]
}

function statementsOf(message: string): ExtractedFact[] {
  const summary = message.search(SUMMARY)
  const said = (summary < 0 ? message : message.slice(0, summary)).slice(0, LONGEST_MESSAGE)
  return sentencesOf(said).flatMap(({ text, masked }) => {
    if (text.length > LONGEST_STATEMENT || NO_STATEMENT.test(masked) || holdsSecret(text)) return []
    const rule = STATEMENT_RULES.find(({ pattern }) => pattern.test(masked))
    return rule === undefined ? [] : [{ content: text, category: rule.category }]
  })
}

/** The text of a user's message: `{ role, content }` with a string or with parts that have a `text`. Else nothing. */
function userText(message: unknown): string {
  if (typeof message !== 'object' || message === null) return ''
  const { role, content } = message as { role?: unknown; content?: unknown }
  if (role !== 'user') return ''
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => {
      const { type, text } = (typeof part === 'object' && part !== null ? part : {}) as {
        type?: unknown
        text?: unknown
      }
      return (type === 'text' || type === 'input_text') && typeof text === 'string' ? text : ''
    })
    .filter((text) => text !== '')
    .join('\n')
}
