import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { ModelEvent } from '../../examples/gateway/model/model.js'
import { openAiModel } from '../../examples/gateway/model/openai.js'
import { textOf } from './support/client.js'
import { startInProcess } from './support/in-process.js'

type Handler = (request: IncomingMessage & { json: Record<string, unknown> }, response: ServerResponse) => void

/** An endpoint of the test's own, on a real socket. */
async function endpoint(handle: Handler): Promise<string> {
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (part: string) => (body += part))
    request.on('end', () => {
      handle(Object.assign(request, { json: JSON.parse(body || '{}') as Record<string, unknown> }), response)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const chunk = (delta: object): string => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`
const model = (baseUrl: string) => openAiModel({ baseUrl, apiKey: 'sk-test', model: 'tiny' })

async function answerOf(baseUrl: string, signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = []
  const input = { messages: [{ role: 'user' as const, content: 'Hi' }], tools: [], signal }
  for await (const event of model(baseUrl).answer(input)) events.push(event)
  return events
}

test('an answer is streamed piece by piece, however the network cuts it', async () => {
  const url = await endpoint((request, response) => {
    expect(request.url).toBe('/v1/chat/completions')
    expect(request.headers.authorization).toBe('Bearer sk-test')
    expect(request.json).toEqual({ model: 'tiny', stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    const bytes = Buffer.from(
      `: hello\n\n${chunk({ role: 'assistant' })}${chunk({ content: 'Grüß' })}${chunk({ content: ' dich 🌊' })}data: [DONE]\n\n`,
    )
    // One byte at a time: no piece ends where a line or a character does.
    for (const byte of bytes) response.write(Buffer.from([byte]))
    response.end()
  })
  expect(await answerOf(url)).toEqual([
    { type: 'text', text: 'Grüß' },
    { type: 'text', text: ' dich 🌊' },
  ])
})

test('tool calls that come in pieces are put together and run, and the model is asked again with their results', async () => {
  const asked: Record<string, unknown>[] = []
  const url = await endpoint((request, response) => {
    asked.push(request.json)
    const call = (piece: object) => chunk({ tool_calls: [{ index: 0, ...piece }] })
    response.end(
      asked.length === 1
        ? call({ id: 'call_7', function: { name: 'calculator', arguments: '' } }) +
            call({ function: { arguments: '{"expression":' } }) +
            call({ function: { arguments: '"6*7"}' } }) +
            'data: [DONE]\n\n'
        : `${chunk({ content: 'It is 42.' })}data: [DONE]\n\n`,
    )
  })
  const { client } = await startInProcess({ model: model(url) })
  const id = await client.newChat()
  expect(textOf(await client.ask(id, 'What is six times seven?'))).toBe('It is 42.')
  expect(asked[1]?.['messages']).toMatchObject([
    { role: 'system' },
    { role: 'user', content: 'What is six times seven?' },
    {
      role: 'assistant',
      tool_calls: [
        { id: 'call_7', type: 'function', function: { name: 'calculator', arguments: '{"expression":"6*7"}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_7', content: '42' },
  ])
  const names = (asked[0]?.['tools'] as { function: { name: string } }[]).map((tool) => tool.function.name)
  expect(names).toEqual(['calculator', 'clock', 'fact_store', 'fact_feedback'])
})

test.each<[string, Handler, string]>([
  ['a refusal', (_, response) => void response.writeHead(401).end('{"error":"sk-test is wrong"}'), 'HTTP 401'],
  ['a redirect', (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(), 'reached'],
  ['a stream that is not JSON', (_, response) => void response.end('data: <html>\n\n'), 'not JSON'],
  [
    'an error in the stream',
    (_, response) => void response.end('data: {"error":{"message":"x"}}\n\n'),
    'reported an error',
  ],
  ['a hang-up', (request) => void request.socket.destroy(), 'reached'],
  [
    'a hang-up in the middle of an answer',
    (request, response) => void response.write(chunk({ content: 'So' }), () => request.socket.destroy()),
    'broke off',
  ],
])('%s is an error that says so and repeats nothing secret', async (_name, handle, expected) => {
  const url = await endpoint(handle)
  const error: unknown = await answerOf(url).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'ModelError', message: expect.stringContaining(expected) as string })
  expect((error as Error).message).not.toContain('sk-test')
})

test('an abort ends the request', async () => {
  const abort = new AbortController()
  const url = await endpoint((request, response) => {
    response.write(chunk({ content: 'So' }))
    abort.abort()
    request.socket.on('close', () => response.end())
  })
  await expect(answerOf(url, abort.signal)).rejects.toThrow()
})

test('a model that asks for tools for ever is stopped', async () => {
  const url = await endpoint((_request, response) => {
    const call = { index: 0, id: 'again', function: { name: 'clock', arguments: '{}' } }
    response.end(`${chunk({ tool_calls: [call] })}data: [DONE]\n\n`)
  })
  const { client } = await startInProcess({ model: model(url) })
  const id = await client.newChat()
  await client.ask(id, 'Hi')
  expect((await client.chat(id)).messages.at(-1)?.content).toContain('asked for tools 8 times')
})
