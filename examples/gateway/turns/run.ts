import type { Logger, MemoryAgent, MemoryLifecycle } from 'tidemark'
import type { JournalPayloads, RunJournal } from 'tidemark/journal'
import { contextMessages, type SessionStore } from 'tidemark/sessions'
import type { Memory } from '../memory/memory.js'
import { type ChatMessage, type Model, ModelError, RECALLED, type ToolRequest } from '../model/model.js'
import type { Tool } from '../tools/tool.js'
import { Answer } from './answer.js'
import type { LiveRun } from './live-runs.js'
import { forMemory, markMissing, nextGeneration, type TurnMark } from './turn-mark.js'

export interface RunParts {
  readonly sessions: SessionStore
  readonly journal: RunJournal
  readonly lifecycle: MemoryLifecycle
  readonly memory: Memory
  readonly model: Model
  readonly tools: readonly Tool[]
  readonly logger: Logger
}

export interface RunRequest {
  readonly sessionId: string
  readonly runId: string
  readonly text: string
  readonly live: LiveRun
  readonly signal: AbortSignal
}

const INSTRUCTIONS = 'You are a helpful assistant. Answer briefly.'
const MESSAGES_IN_CONTEXT = 40
const RECALL_TIMEOUT_MS = 3_000
const MOST_TOOL_ROUNDS = 8

/**
 * One turn, from the saved words of the user to the mark in memory. Each piece goes to the journal before anybody sees
 * it, so that what was seen can be shown again after a crash.
 */
export class Run {
  readonly #parts: RunParts
  readonly #request: RunRequest
  readonly #answer = new Answer()

  constructor(parts: RunParts, request: RunRequest) {
    this.#parts = parts
    this.#request = request
  }

  async perform(agent: MemoryAgent): Promise<void> {
    const { sessions, lifecycle } = this.#parts
    const { sessionId, runId, text, signal } = this.#request
    const session = await sessions.get(sessionId)
    if (session === undefined) throw new Error('the session of a running turn is gone')
    await markMissing(lifecycle, agent, session)
    const history = contextMessages(session).slice(-MESSAGES_IN_CONTEXT)
    const facts = await this.#recall()
    await this.#converse([
      { role: 'system', content: [INSTRUCTIONS, ...(facts.length === 0 ? [] : [prompt(facts)])].join('\n\n') },
      ...history.flatMap(({ role, content }): ChatMessage[] =>
        content !== '' && (role === 'user' || role === 'assistant') ? [{ role, content }] : [],
      ),
      { role: 'user', content: text },
    ])
    signal.throwIfAborted()
    await this.#complete(agent, await nextGeneration(lifecycle, sessionId), runId)
  }

  /** The transcript first, then the mark: a turn that memory knows is always one that the user can see. */
  async #complete(agent: MemoryAgent, generation: number, runId: string): Promise<void> {
    const { sessions, lifecycle } = this.#parts
    const { sessionId, text } = this.#request
    const { messages, toolCalls } = this.#answer
    const last = messages.at(-1) ?? { role: 'assistant', content: '(no answer)' }
    const mark: TurnMark = { kind: 'turn', runId, generation }
    const answer = [...messages.slice(0, -1), { ...last, attachments: [mark] }]
    const ended = await sessions.endTurn(sessionId, runId, answer, { toolCalls })
    // The session went on with another run: this turn is not part of it.
    if (ended.status !== 'ended') return
    const said = forMemory([{ role: 'user', content: text }, ...answer])
    await lifecycle.markTurnCompleted(sessionId, { agent, messages: said, turnId: runId })
  }

  /** Keeps what there is, with a note that is shown to the user and never to a model. Such a turn is not marked. */
  async fail(reason: string): Promise<void> {
    const { sessions } = this.#parts
    const { sessionId, runId } = this.#request
    await this.#record('error', { message: reason })
    const { messages, toolCalls } = this.#answer
    const partial = messages.map((message) => ({ ...message, partial: true as const }))
    const note = {
      role: 'assistant' as const,
      content: `The answer failed: ${reason}. Retry to ask again.`,
      interruption: { state: partial.length === 0 ? ('nothing' as const) : ('recovered' as const) },
    }
    await sessions.endTurn(sessionId, runId, [...partial, note], { toolCalls })
  }

  /** The session keeps the run as its active one: whoever reads it in the next process recovers it. */
  async interrupt(): Promise<void> {
    await this.#record('error', { message: 'the gateway was stopped', type: 'interrupted' })
  }

  /** A memory that is away must not stop the conversation. */
  async #recall(): Promise<string[]> {
    const { memory, logger } = this.#parts
    const { sessionId, text, signal } = this.#request
    const startedAt = Date.now()
    try {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(RECALL_TIMEOUT_MS)])
      const facts = await memory.recall(text, { sessionId, signal: bounded })
      if (facts.length > 0) await this.#card('recall', { facts }, startedAt, false)
      return facts
    } catch (error) {
      signal.throwIfAborted()
      logger.warn({ err: error, sessionId }, 'nothing could be recalled for a turn')
      await this.#card('recall', { facts: [] }, startedAt, true)
      return []
    }
  }

  async #converse(messages: ChatMessage[]): Promise<void> {
    const { model, tools } = this.#parts
    const { signal } = this.#request
    const schemas = tools.map(({ schema }) => schema)
    for (let round = 0; round < MOST_TOOL_ROUNDS; round++) {
      const requests: ToolRequest[] = []
      let said = ''
      for await (const event of model.answer({ messages, tools: schemas, signal })) {
        if (event.type === 'tool') {
          requests.push(event.request)
          continue
        }
        said += event.text
        this.#answer.addText(event.text)
        await this.#record('token', { text: event.text })
      }
      if (requests.length === 0) return
      messages.push({ role: 'assistant', content: said, toolCalls: requests })
      for (const request of requests) {
        messages.push({ role: 'tool', toolCallId: request.id, content: await this.#callTool(request) })
      }
    }
    throw new ModelError(`the model asked for tools ${MOST_TOOL_ROUNDS} times in a row`)
  }

  async #callTool({ name, arguments: json }: ToolRequest): Promise<string> {
    const startedAt = Date.now()
    const args = parse(json)
    const call = this.#answer.addTool({ name, args })
    await this.#record('tool', { name, args })
    let result: string
    let isError = false
    try {
      const tool = this.#parts.tools.find(({ schema }) => schema.function.name === name)
      if (tool === undefined) throw new Error(`there is no tool '${name}'`)
      result = await tool.run(args)
    } catch (error) {
      isError = true
      result = `Error: ${error instanceof Error ? error.message : 'the tool failed'}`
    }
    const durationMs = Date.now() - startedAt
    Object.assign(call, { done: true, isError, durationMs, preview: result.slice(0, 500) })
    await this.#record('tool_complete', { name, isError, durationMs })
    return result
  }

  /** Something that happened at once, shown as a card. */
  async #card(name: string, args: unknown, startedAt: number, isError: boolean): Promise<void> {
    const durationMs = Date.now() - startedAt
    Object.assign(this.#answer.addTool({ name, args }), { done: true, isError, durationMs })
    await this.#record('tool', { name, args })
    await this.#record('tool_complete', { name, isError, durationMs })
  }

  async #record<Name extends keyof JournalPayloads>(event: Name, payload: JournalPayloads[Name]): Promise<void> {
    const { sessionId, runId, live } = this.#request
    const { seq } = await this.#parts.journal.append(sessionId, runId, event, payload)
    live.publish({ seq, event, payload, at: Date.now() })
  }
}

function prompt(facts: readonly string[]): string {
  return [RECALLED, ...facts.map((fact) => `- ${fact}`)].join('\n')
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json === '' ? '{}' : json) as unknown
  } catch {
    return json
  }
}
