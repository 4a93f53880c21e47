import {
  type ChatMessage,
  type Model,
  ModelError,
  type ModelEvent,
  type ModelInput,
  type ToolRequest,
} from './model.js'

export interface OpenAiOptions {
  /** Up to and without `/chat/completions`, for example `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly model: string
  /** How long one answer may take in all. @default 300000 */
  readonly timeoutMs?: number
}

/** Any endpoint that speaks OpenAI's chat completions, streamed. */
export function openAiModel({ baseUrl, apiKey, model, timeoutMs = 300_000 }: OpenAiOptions): Model {
  return {
    name: model,
    async *answer({ messages, tools, signal }: ModelInput): AsyncGenerator<ModelEvent> {
      const request = {
        method: 'POST',
        // The key goes to the endpoint that was configured and to nobody it points at.
        redirect: 'error' as const,
        headers: {
          'content-type': 'application/json',
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
        },
        body: JSON.stringify({
          ...{ model, stream: true, messages: messages.map(toWire) },
          ...(tools.length === 0 ? {} : { tools }),
        }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      }
      const response = await fetch(`${baseUrl}/chat/completions`, request).catch((error: unknown) => {
        throw new ModelError("the model's endpoint could not be reached", { cause: error })
      })
      if (!response.ok || response.body === null) {
        await response.body?.cancel()
        throw new ModelError(`the model's endpoint answered with HTTP ${response.status}`)
      }
      try {
        yield* readStream(response.body)
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ModelError) throw error
        throw new ModelError("the model's endpoint broke off in the middle of its answer", { cause: error })
      }
    },
  }
}

interface Delta {
  readonly content?: string | null
  readonly tool_calls?: readonly {
    readonly index?: number
    readonly id?: string
    readonly function?: { readonly name?: string; readonly arguments?: string }
  }[]
}

async function* readStream(body: ReadableStream<Uint8Array>): AsyncGenerator<ModelEvent> {
  const requests = new Map<number, { id: string; name: string; arguments: string }>()
  for await (const data of readEvents(body)) {
    for (const { index = 0, id, function: called } of data.tool_calls ?? []) {
      // A call comes in pieces: the name first, its arguments bit by bit.
      const request = requests.get(index) ?? { id: id ?? `call_${index}`, name: '', arguments: '' }
      requests.set(index, request)
      request.name += called?.name ?? ''
      request.arguments += called?.arguments ?? ''
    }
    if (data.content) yield { type: 'text', text: data.content }
  }
  for (const request of requests.values()) yield { type: 'tool', request: request satisfies ToolRequest }
}

const LONGEST_LINE = 1024 * 1024

async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<Delta> {
  let rest = ''
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > LONGEST_LINE) throw new ModelError("the model's endpoint sent an endless line")
    for (const line of lines) {
      if (!line.startsWith('data:')) continue
      const data = line.slice('data:'.length).trim()
      if (data === '[DONE]') return
      const delta = parseDelta(data)
      if (delta !== undefined) yield delta
    }
  }
}

function parseDelta(data: string): Delta | undefined {
  try {
    const chunk = JSON.parse(data) as { choices?: { delta?: Delta }[]; error?: unknown }
    if (chunk.error !== undefined) throw new ModelError("the model's endpoint reported an error in its stream")
    return chunk.choices?.[0]?.delta
  } catch (error) {
    if (error instanceof SyntaxError) throw new ModelError("the model's endpoint sent something that is not JSON")
    throw error
  }
}

function toWire(message: ChatMessage): object {
  if (message.role === 'tool') {
    return { role: 'tool', tool_call_id: message.toolCallId, content: message.content }
  }
  if (message.role !== 'assistant' || message.toolCalls === undefined) {
    return { role: message.role, content: message.content }
  }
  const tool_calls = message.toolCalls.map(({ id, name, arguments: args }) => {
    return { id, type: 'function', function: { name, arguments: args } }
  })
  return { role: 'assistant', content: message.content, tool_calls }
}
