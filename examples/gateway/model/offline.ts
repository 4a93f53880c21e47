import { setTimeout as pause } from 'node:timers/promises'
import type { ChatMessage, Model, ModelEvent, ModelInput } from './model.js'
import { planAnswer } from './offline-answers.js'

export interface OfflineOptions {
  /** Between two words. @default 15 */
  readonly wordMs?: number
  /** The same, when the user asks for it slowly. @default 160 */
  readonly slowWordMs?: number
}

/** Needs no key and no network: it answers by rules, so that everything else can be tried. */
export function offlineModel({ wordMs = 15, slowWordMs = 160 }: OfflineOptions = {}): Model {
  return {
    name: 'built-in (offline)',
    async *answer({ messages, signal }: ModelInput): AsyncGenerator<ModelEvent> {
      const step = planAnswer(messages)
      if (step.type === 'tool') {
        const id = `call_${messages.length}`
        yield { type: 'tool', request: { id, name: step.name, arguments: JSON.stringify(step.args) } }
        return
      }
      const delayMs = wantsItSlowly(messages) ? slowWordMs : wordMs
      for (const [word] of step.text.matchAll(/\s*\S+/g)) {
        if (delayMs > 0) await pause(delayMs, undefined, { signal })
        signal.throwIfAborted()
        yield { type: 'text', text: word }
      }
    },
  }
}

function wantsItSlowly(messages: readonly ChatMessage[]): boolean {
  return /\bslow(?:ly)?\b/i.test(messages.findLast(({ role }) => role === 'user')?.content ?? '')
}
