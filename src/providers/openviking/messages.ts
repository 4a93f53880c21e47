import type { CompletedTurn } from '../../coordinator/agent.js'
import { turnId } from './naming.js'
import { isRecord } from './outcome.js'
import { stripRecalled } from './recall.js'

export interface ToolPart {
  readonly type: 'tool'
  readonly tool_id: string
  readonly tool_name: string
  readonly tool_input?: Record<string, unknown>
  readonly tool_output: string
  readonly tool_status: 'pending' | 'completed' | 'error'
}

export type WirePart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: unknown }
  | ToolPart

export interface WireMessage {
  readonly role: 'user' | 'assistant'
  readonly parts: readonly WirePart[]
  readonly created_at: string
  readonly turn_id: string
  readonly source_message_ids: readonly string[]
  readonly peer_id?: string
}

interface Draft {
  readonly role: 'user' | 'assistant'
  readonly parts: WirePart[]
}

/**
 * A turn in the words of the server. The same turn always gives the same messages, one to one with what the server
 * counts: that is what lets a count say how far an interrupted attempt came. So there is never a user message of
 * several tool parts, which the server would split; tool calls and their results become one part of an assistant message.
 */
export function translateTurn(turn: CompletedTurn, peer: string | undefined): WireMessage[] {
  const drafts: Draft[] = []
  const tools = new Map<string, { parts: WirePart[]; index: number }>()
  for (const message of turn.messages) translateMessage(message, drafts, tools)
  const id = turnId(turn.sessionId, turn.generation)
  const created_at = new Date(turn.completedAt).toISOString()
  return drafts
    .filter((draft) => draft.parts.length > 0)
    .map(({ role, parts }, index) => ({
      role,
      parts,
      created_at,
      turn_id: id,
      source_message_ids: [`${id}:${index}`],
      ...(role === 'user' && peer !== undefined && { peer_id: peer }),
    }))
}

type Tools = Map<string, { parts: WirePart[]; index: number }>

function translateMessage(message: unknown, drafts: Draft[], tools: Tools): void {
  if (message === null || message === undefined) return
  if (typeof message === 'string') {
    drafts.push({ role: 'user', parts: textParts(message) })
    return
  }
  // Of a shape nobody told us about: kept as it is, because a finished turn is not ours to drop.
  if (!isRecord(message) || typeof message['role'] !== 'string') {
    drafts.push({ role: 'user', parts: textParts(JSON.stringify(message)) })
    return
  }
  const { role, content, parts, tool_calls } = message
  // Prompts are not conversation, and recalled memory is often put there.
  if (role === 'system' || role === 'developer') return
  if (role === 'tool' || role === 'function') {
    addResult(drafts, tools, { id: message['tool_call_id'], name: message['name'], output: content, failed: false })
    return
  }
  const draft: Draft = { role: role === 'user' ? 'user' : 'assistant', parts: [] }
  drafts.push(draft)
  const said = parts ?? content
  if (typeof said === 'string') draft.parts.push(...textParts(said))
  if (Array.isArray(said)) for (const part of said as unknown[]) translatePart(part, draft, drafts, tools)
  if (Array.isArray(tool_calls)) for (const call of tool_calls as unknown[]) addOpenAiCall(call, draft, drafts, tools)
}

function translatePart(part: unknown, draft: Draft, drafts: Draft[], tools: Tools): void {
  if (typeof part === 'string') {
    draft.parts.push(...textParts(part))
    return
  }
  if (!isRecord(part)) return
  switch (part['type']) {
    case 'text':
    case 'input_text':
    case 'output_text':
      if (typeof part['text'] === 'string') draft.parts.push(...textParts(part['text']))
      return
    case 'image_url':
      if (part['image_url']) draft.parts.push({ type: 'image_url', image_url: part['image_url'] })
      return
    case 'tool':
    case 'tool_use':
    case 'tool-call':
      addCall(drafts, draft, tools, {
        id: part['tool_id'] ?? part['id'] ?? part['toolCallId'],
        name: part['tool_name'] ?? part['name'] ?? part['toolName'],
        input: part['tool_input'] ?? part['input'] ?? part['args'],
        output: part['tool_output'],
        failed: part['tool_status'] === 'error',
      })
      return
    case 'tool_result':
    case 'tool-result':
      addResult(drafts, tools, {
        id: part['tool_use_id'] ?? part['toolCallId'],
        name: part['toolName'],
        output: part['content'] ?? part['output'] ?? part['result'],
        failed: part['is_error'] === true || part['isError'] === true,
      })
      return
    // What the memory itself supplied, and what the model only thought, is not learned.
    case 'context':
    case 'thinking':
    case 'redacted_thinking':
    case 'reasoning':
      return
    default:
      if (typeof part['text'] === 'string') draft.parts.push(...textParts(part['text']))
  }
}

interface ToolEvent {
  readonly id: unknown
  readonly name: unknown
  readonly input?: unknown
  readonly output: unknown
  readonly failed: boolean
}

function addOpenAiCall(call: unknown, draft: Draft, drafts: Draft[], tools: Tools): void {
  if (!isRecord(call)) return
  const made = isRecord(call['function']) ? call['function'] : {}
  addCall(drafts, draft, tools, {
    id: call['id'],
    name: made['name'],
    input: made['arguments'],
    output: undefined,
    failed: false,
  })
}

function addCall(drafts: Draft[], draft: Draft, tools: Tools, event: ToolEvent): void {
  const parts = draft.role === 'assistant' ? draft.parts : ownMessage(drafts)
  const part: ToolPart = {
    type: 'tool',
    tool_id: stringOf(event.id),
    tool_name: stringOf(event.name),
    ...inputOf(event.input),
    tool_output: outputOf(event.output),
    tool_status: event.output === undefined ? 'pending' : event.failed ? 'error' : 'completed',
  }
  parts.push(part)
  if (part.tool_id !== '') tools.set(part.tool_id, { parts, index: parts.length - 1 })
}

/** A result joins its call; one whose call was in an earlier turn stands alone. */
function addResult(drafts: Draft[], tools: Tools, event: ToolEvent): void {
  const place = tools.get(stringOf(event.id))
  const call = place?.parts[place.index]
  const tool_status = event.failed ? 'error' : 'completed'
  if (place !== undefined && call?.type === 'tool') {
    place.parts[place.index] = { ...call, tool_output: outputOf(event.output), tool_status }
  } else {
    const result: ToolPart = {
      type: 'tool',
      tool_id: stringOf(event.id),
      tool_name: stringOf(event.name),
      tool_output: outputOf(event.output),
      tool_status,
    }
    ownMessage(drafts).push(result)
  }
}

function ownMessage(drafts: Draft[]): WirePart[] {
  const parts: WirePart[] = []
  drafts.push({ role: 'assistant', parts })
  return parts
}

function textParts(text: string): WirePart[] {
  const rest = stripRecalled(text)
  return rest.trim() === '' ? [] : [{ type: 'text', text: rest }]
}

const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The server takes an object; OpenAI sends its text. */
function inputOf(input: unknown): { tool_input?: Record<string, unknown> } {
  if (isRecord(input)) return { tool_input: input }
  if (typeof input !== 'string' || input === '') return {}
  try {
    const parsed: unknown = JSON.parse(input)
    return isRecord(parsed) ? { tool_input: parsed } : { tool_input: { value: parsed } }
  } catch {
    // Models do write broken JSON; the text itself is worth keeping.
    return { tool_input: { value: input } }
  }
}

function outputOf(output: unknown): string {
  if (output === undefined || output === null) return ''
  if (typeof output === 'string') return stripRecalled(output)
  if (Array.isArray(output) && output.every((part) => isRecord(part) && typeof part['text'] === 'string'))
    return stripRecalled(output.map((part: { text: string }) => part.text).join('\n'))
  return JSON.stringify(output)
}
