import { type Agent, request } from 'node:http'

export interface Seen {
  readonly newChatMs: number[]
  readonly firstTokenMs: number[]
  readonly errors: string[]
  /** Finished turns by chat. */
  readonly turns: Map<string, number>
}

const TURNS_PER_CHAT = 3
/** Not everybody says the same: a memory in which all facts share their words is none. */
const VERBS = 'prefer like love enjoy use need own drive study play eat drink wear read speak avoid'.split(' ')
const FIRST_TOKEN = 'event: token'
const ENDED = 'event: end'

/** A person who never tires: three turns, then a new chat, until the time is up. */
export class User {
  readonly #url: URL
  readonly #token: string
  readonly #agent: Agent
  readonly #seen: Seen

  constructor(url: string, token: string, agent: Agent, seen: Seen) {
    this.#url = new URL(url)
    this.#token = token
    this.#agent = agent
    this.#seen = seen
  }

  /** Answers have `words` words: people whose answers end together would all start a new chat together. */
  async chatUntil(end: number, { name, words }: { readonly name: string; readonly words: number }): Promise<void> {
    let previousId: string | undefined
    for (let chats = 0; Date.now() < end; chats++) {
      try {
        previousId = await this.#newChat(previousId)
        for (let turn = 0; turn < TURNS_PER_CHAT && Date.now() < end; turn++) {
          await this.#ask(previousId, turn === 0 ? statement(name, chats) : `count to ${words}`)
        }
      } catch (error) {
        this.#seen.errors.push(error instanceof Error ? error.message : String(error))
      }
    }
  }

  async #newChat(previousId: string | undefined): Promise<string> {
    const startedAt = performance.now()
    const body = previousId === undefined ? {} : { previousId }
    const { id } = JSON.parse(await this.#send('POST', '/api/sessions', 201, body)) as { id: string }
    this.#seen.newChatMs.push(performance.now() - startedAt)
    return id
  }

  async #ask(id: string, text: string): Promise<void> {
    const startedAt = performance.now()
    const { runId } = JSON.parse(await this.#send('POST', `/api/sessions/${id}/turns`, 202, { text })) as {
      runId: string
    }
    let isFirst = true
    const stream = await this.#send('GET', `/api/sessions/${id}/runs/${runId}/events`, 200, undefined, (part) => {
      if (!isFirst || !part.includes(FIRST_TOKEN)) return
      isFirst = false
      this.#seen.firstTokenMs.push(performance.now() - startedAt)
    })
    if (!stream.includes(ENDED)) throw new Error('a stream broke off')
    this.#seen.turns.set(id, (this.#seen.turns.get(id) ?? 0) + 1)
  }

  #send(
    method: string,
    path: string,
    expected: number,
    body?: object,
    onPart: (part: string) => void = () => undefined,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const headers = {
        'x-gateway-token': this.#token,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      }
      const { hostname: host, port } = this.#url
      const sent = request({ host, port, method, path, headers, agent: this.#agent }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part
          onPart(part)
        })
        response.on('error', reject)
        response.on('end', () => {
          if (response.statusCode === expected) resolve(text)
          else reject(new Error(`${method} ${path.replace(/[\w-]{36}/g, ':id')}: HTTP ${String(response.statusCode)}`))
        })
      })
      sent.on('error', reject)
      sent.end(body === undefined ? undefined : JSON.stringify(body))
    })
  }
}

function statement(name: string, number: number): string {
  const verb = VERBS[(name.length + number * 7 + name.charCodeAt(name.length - 1)) % VERBS.length] ?? ''
  return `I ${verb} ${name}${number}`
}
