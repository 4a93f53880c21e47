import { TrackedList } from './tracked-list.js'
import type { Message, Session, ToolCall } from './types.js'

/** The fields beside the two lists; each is written when it changed. */
const FIELDS = [
  'title',
  'createdAt',
  'updatedAt',
  'metadata',
  'pendingUserMessage',
  'pendingAttachments',
  'pendingStartedAt',
  'pendingFrom',
  'activeRunId',
  'recoveries',
  'rotatedFrom',
  'rotatedTo',
] as const satisfies readonly (keyof Session)[]

const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'tool'])

/** Below this size a file is never worth a rewrite. */
const SMALL_FILE = 16 * 1024

/** Sizes are compared with that of a file, where a letter may take up to four bytes. */
export const bytesOf = (json: string): number => Buffer.byteLength(json)

/** What has to be written, ready as text; `accept` says that it was handed to the log. */
export interface Difference {
  /** The fields of one record, or `undefined` when nothing changed. */
  readonly record: string | undefined
  readonly accept: () => void
}

interface ListDifference<T> {
  readonly start: number
  readonly items: readonly T[]
  readonly json: readonly string[]
}

/** What the file of a session holds: the base for the next difference. */
export class SavedState {
  #messages = new TrackedList<Message>()
  #toolCalls = new TrackedList<ToolCall>()
  #fields: Readonly<Record<string, string>> = {}

  /** The state of a session as it was read from its file; the sizes are those of its messages. */
  static ofLoaded(session: Session, finishedRuns: readonly string[], messageBytes: readonly number[]): SavedState {
    const state = new SavedState()
    state.#messages.accept(0, session.messages, messageBytes)
    state.#toolCalls.accept(
      0,
      session.toolCalls,
      session.toolCalls.map((call) => bytesOf(JSON.stringify(call))),
    )
    state.#fields = serialiseFields(session, finishedRuns)
    return state
  }

  get messageCount(): number {
    return this.#messages.length
  }

  /** Whether a file of this size carries more dead bytes than live ones. */
  isMostlyDead(fileBytes: number): boolean {
    if (fileBytes <= SMALL_FILE) return false
    const fieldBytes = Object.values(this.#fields).reduce((sum, json) => sum + bytesOf(json), 0)
    const live = this.#messages.totalBytes + this.#toolCalls.totalBytes + fieldBytes
    return fileBytes - live > live
  }

  /** Changes nothing until `accept`: a session that cannot be serialised is refused before anything happened. */
  difference(session: Session, finishedRuns: readonly string[]): Difference {
    const messages = differenceOf(this.#messages, session.messages, checkMessage)
    const toolCalls = differenceOf(this.#toolCalls, session.toolCalls, checkToolCall)
    const fields = serialiseFields(session, finishedRuns)
    const parts: string[] = []
    if (messages.start < this.#messages.length) parts.push(`"keep":${messages.start}`)
    if (messages.json.length > 0) parts.push(`"messages":[${messages.json.join(',')}]`)
    if (toolCalls.start < this.#toolCalls.length) parts.push(`"keepCalls":${toolCalls.start}`)
    if (toolCalls.json.length > 0) parts.push(`"toolCalls":[${toolCalls.json.join(',')}]`)
    const changed = Object.entries(fields).filter(([name, json]) => this.#fields[name] !== json)
    if (changed.length > 0) parts.push(`"set":${objectOf(changed)}`)
    return {
      record: parts.length === 0 ? undefined : parts.join(','),
      accept: () => {
        acceptList(this.#messages, messages)
        acceptList(this.#toolCalls, toolCalls)
        this.#fields = fields
      },
    }
  }

  /** The records of a new file: one a message, so that damage costs little. */
  snapshot(session: Session, finishedRuns: readonly string[]): { records: string[]; accept: () => void } {
    const messages = differenceOf(new TrackedList<Message>(), session.messages, checkMessage)
    const toolCalls = differenceOf(new TrackedList<ToolCall>(), session.toolCalls, checkToolCall)
    const fields = serialiseFields(session, finishedRuns)
    const rest = messages.json.map((json) => `"messages":[${json}]`)
    if (toolCalls.json.length > 0) rest.push(`"toolCalls":[${toolCalls.json.join(',')}]`)
    // The count tells a file that was cut between two of these from one that was complete.
    const records = [`"records":${rest.length + 1},"set":${objectOf(Object.entries(fields))}`, ...rest]
    return {
      records,
      accept: () => {
        this.#messages = new TrackedList()
        this.#toolCalls = new TrackedList()
        acceptList(this.#messages, messages)
        acceptList(this.#toolCalls, toolCalls)
        this.#fields = fields
      },
    }
  }
}

function differenceOf<T extends object>(
  saved: TrackedList<T>,
  list: readonly T[],
  check: (item: T, at: number) => void,
): ListDifference<T> {
  const given: unknown = list
  if (!Array.isArray(given)) throw new TypeError('Expected messages and toolCalls of a session to be arrays.')
  const start = saved.firstChange(list)
  const items = list.slice(start)
  const json = items.map((item, at) => {
    check(item, start + at)
    return JSON.stringify(item)
  })
  return { start, items, json }
}

function acceptList<T extends object>(saved: TrackedList<T>, { start, items, json }: ListDifference<T>): void {
  if (items.length === 0 && start === saved.length) return
  saved.accept(start, items, json.map(bytesOf))
}

function serialiseFields(session: Session, finishedRuns: readonly string[]): Record<string, string> {
  const fields: Record<string, string> = { finishedRuns: JSON.stringify(finishedRuns) }
  for (const name of FIELDS) {
    const json = JSON.stringify(session[name]) as string | undefined
    if (json === undefined) throw new TypeError(`Expected session.${name} to be a plain value, found none.`)
    fields[name] = json
  }
  return fields
}

const objectOf = (entries: readonly (readonly [string, string])[]): string =>
  `{${entries.map(([name, json]) => `"${name}":${json}`).join(',')}}`

function checkMessage(message: Partial<Message> | undefined, at: number): void {
  if (!ROLES.has(message?.role) || typeof message?.content !== 'string' || !Number.isFinite(message.timestamp)) {
    throw new TypeError(
      `Expected message ${at} to have a role (user, assistant, system or tool), a content string and a timestamp.`,
    )
  }
}

function checkToolCall(call: Partial<ToolCall> | undefined, at: number): void {
  if (typeof call?.name !== 'string' || !Number.isSafeInteger(call.messageIndex) || typeof call.done !== 'boolean') {
    throw new TypeError(`Expected tool call ${at} to have a name, a messageIndex and done.`)
  }
}
