import { randomBytes } from 'node:crypto'
import { checkName } from './auth.js'
import { invalid, isRecord } from './envelope.js'
import type { Part, StoredMessage } from './model.js'

const PART_TYPES = ['text', 'context', 'tool', 'image_url']

/** `utils/token_estimation.py:28-40`: a quarter per character, 1.5 per CJK character, 2 beyond the basic plane. */
export function estimateTokens(messages: readonly StoredMessage[]): number {
  let sum = 0
  for (const { parts } of messages) {
    for (const part of parts) {
      const said = [part['text'], part['abstract'], part['tool_id'], part['tool_name'], part['tool_output']]
      if (part['tool_input'] !== undefined && part['tool_input'] !== null) said.push(JSON.stringify(part['tool_input']))
      for (const text of said) if (typeof text === 'string') sum += weigh(text)
    }
  }
  return Math.ceil(sum)
}

function weigh(text: string): number {
  let sum = 0
  for (const char of text) {
    const code = char.codePointAt(0) ?? 0
    sum += code > 0xffff ? 2 : code >= 0x2e80 && code <= 0x9fff ? 1.5 : 0.25
  }
  return sum
}

/** `sessions.py:28-186`: parts win over content; one of them must be there; an unknown part type degrades to text. */
export function readMessage(input: unknown, loc: string): StoredMessage[] {
  if (!isRecord(input)) throw invalid(loc, 'Input should be a valid dictionary', 'model_type')
  const { role, content, parts, peer_id, created_at, turn_id, message_kind, source_message_ids } = input
  if (typeof role !== 'string') throw invalid(`${loc}.role`, 'Field required', 'missing')
  if (content == null && parts == null) throw invalid(loc, "Value error, Either 'content' or 'parts' must be provided")
  if (content != null && typeof content !== 'string')
    throw invalid(`${loc}.content`, 'Input should be a valid string', 'string_type')
  if (parts != null && !Array.isArray(parts)) throw invalid(`${loc}.parts`, 'Input should be a valid list', 'list_type')
  const read = parts == null ? [{ type: 'text', text: content }] : parts.map((part: unknown) => readPart(part, loc))
  const shared = {
    role,
    created_at: typeof created_at === 'string' ? created_at : new Date().toISOString(),
    ...(typeof peer_id === 'string' && { peer_id: checkName('peer_id', peer_id) }),
    ...(typeof turn_id === 'string' && { turn_id }),
    ...(typeof message_kind === 'string' && { message_kind }),
    ...(Array.isArray(source_message_ids) && { source_message_ids: source_message_ids.map(String) }),
  }
  // A user message made only of several tool parts is split, so the count rises by more than was sent (`sessions.py:713-832`).
  const split = role === 'user' && read.length > 1 && read.every((part) => part.type === 'tool')
  const groups = split ? read.map((part) => [part]) : [read]
  return groups.map((group) => ({ id: `msg_${randomBytes(16).toString('hex')}`, ...shared, parts: group }))
}

function readPart(part: unknown, loc: string): Part {
  if (!isRecord(part)) throw invalid(`${loc}.parts`, 'Input should be a valid dictionary', 'dict_type')
  if (part['type'] === 'image_url' && !hasUrl(part['image_url']))
    throw invalid(`${loc}.parts`, 'image_url must not be empty')
  if (typeof part['type'] !== 'string' || !PART_TYPES.includes(part['type']))
    return { type: 'text', text: typeof part['text'] === 'string' ? part['text'] : '' }
  return { ...part, type: part['type'] }
}

const hasUrl = (value: unknown): boolean =>
  (typeof value === 'string' && value !== '') ||
  (isRecord(value) && typeof value['url'] === 'string' && value['url'] !== '')

export function textOf(message: StoredMessage): string {
  return message.parts
    .map((part) => [part['text'], part['tool_output']].filter((text) => typeof text === 'string').join(' '))
    .join(' ')
    .trim()
}
