import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'

export interface ChatView {
  readonly id: string
  readonly title: string
  readonly messages: readonly {
    readonly role: string
    readonly content: string
    readonly partial?: true
    readonly recovered?: { readonly runId: string }
    readonly interruption?: { readonly state: string }
  }[]
  readonly toolCalls: readonly { readonly name: string; readonly done: boolean; readonly args?: unknown }[]
  readonly activeRunId: string | null
  readonly pendingUserMessage: string | null
  readonly memory: { readonly generation: number; readonly watermark: number; readonly waiting: number }
}

export interface StreamEvent {
  readonly id: number | undefined
  readonly event: string
  readonly data: Record<string, unknown>
}

export interface Answer<T> {
  readonly status: number
  readonly body: T
}

/** Talks to a gateway as its page does. */
export class Client {
  readonly url: string
  readonly token: string

  private constructor(url: string, token: string) {
    this.url = url
    this.token = token
  }

  static async connect(url: string): Promise<Client> {
    const page = await (await fetch(url)).text()
    const token = /name="gateway-token" content="([^"]+)"/.exec(page)?.[1]
    if (token === undefined) throw new Error('the page carries no token')
    return new Client(url, token)
  }

  async send<T>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    const response = await fetch(this.url + path, {
      method,
      headers: {
        'x-gateway-token': this.token,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as T }
  }

  async newChat(previousId?: string): Promise<string> {
    const answer = await this.send<{ id: string }>(
      'POST',
      '/api/sessions',
      previousId === undefined ? {} : { previousId },
    )
    return expectStatus(answer, 201).id
  }

  async chat(id: string): Promise<ChatView> {
    return expectStatus(await this.send<ChatView>('GET', `/api/sessions/${id}`), 200)
  }

  async begin(id: string, text: string): Promise<string> {
    return expectStatus(await this.send<{ runId: string }>('POST', `/api/sessions/${id}/turns`, { text }), 202).runId
  }

  /** Says something and waits for the whole answer. */
  async ask(id: string, text: string): Promise<StreamEvent[]> {
    const runId = await this.begin(id, text)
    const events: StreamEvent[] = []
    for await (const event of this.follow(id, runId)) events.push(event)
    return events
  }

  async facts(): Promise<string[]> {
    const { body } = await this.send<{ facts: { content: string }[] }>('GET', '/api/memory/facts')
    return body.facts.map(({ content }) => content)
  }

  /** The events of a run until the gateway says that it is over, or until the caller stops. */
  async *follow(id: string, runId: string, { after, lastEventId }: { after?: number; lastEventId?: number } = {}) {
    const query = after === undefined ? '' : `?after=${after}`
    const headers: Record<string, string> = lastEventId === undefined ? {} : { 'last-event-id': String(lastEventId) }
    const hangUp = new AbortController()
    const path = `/api/sessions/${id}/runs/${runId}/events${query}`
    const response = await fetch(this.url + path, { headers, signal: hangUp.signal })
    if (!response.ok || response.body === null) throw new Error(`following a run: HTTP ${response.status}`)
    let rest = ''
    try {
      for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
        const blocks = (rest + Buffer.from(bytes).toString('latin1')).split('\n\n')
        rest = blocks.pop() ?? ''
        for (const block of blocks) {
          const event = parseEvent(Buffer.from(block, 'latin1').toString())
          if (event === undefined) continue
          yield event
          if (event.event === 'end') return
        }
      }
    } finally {
      hangUp.abort()
    }
  }
}

/** Sends exactly this request: `fetch` would tidy up paths and headers. */
export async function sendRaw(
  url: string,
  options: { method: string; path: string; headers: Record<string, string>; body?: string | Buffer },
): Promise<{ status: number; text: string; headers: NodeJS.Dict<string | string[]> }> {
  const { hostname, port } = new URL(url)
  const { method, path, headers, body } = options
  const sent = request({ host: hostname, port, method, path, headers, agent: false })
  // The gateway may answer and hang up before it has read a body that is too large.
  sent.on('error', () => undefined)
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  let text = ''
  for await (const part of response.setEncoding('utf8')) text += part as string
  return { status: response.statusCode ?? 0, text, headers: response.headers }
}

/** What an answer said, put together from its events. */
export function textOf(events: readonly StreamEvent[]): string {
  return events.map(({ event, data }) => (event === 'token' ? String(data['text']) : '')).join('')
}

function expectStatus<T>({ status, body }: Answer<T>, expected: number): T {
  if (status !== expected) throw new Error(`expected HTTP ${expected}, got ${status}: ${JSON.stringify(body)}`)
  return body
}

function parseEvent(block: string): StreamEvent | undefined {
  const field = (name: string): string | undefined =>
    block
      .split('\n')
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
  const [id, event, data] = [field('id'), field('event'), field('data')]
  if (event === undefined || data === undefined) return undefined
  return { id: id === undefined ? undefined : Number(id), event, data: JSON.parse(data) as Record<string, unknown> }
}
