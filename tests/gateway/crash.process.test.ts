import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/temporary.js'
import { Client, type StreamEvent, textOf } from './support/client.js'
import { startGateway } from './support/gateway-process.js'
import { until } from './support/in-process.js'

const QUESTION = 'Compute 17 * 23 and count slowly to 60'

test('Y1: kill -9 in the middle of an answer: what was seen is there and marked, and the user can go on', async () => {
  const directory = await temporaryDirectory()
  const gateway = await startGateway({ directory })
  const client = await Client.connect(gateway.url)
  const id = await client.newChat()
  await client.ask(id, 'I live in Lisbon.')
  const runId = await client.begin(id, QUESTION)
  const seen: StreamEvent[] = []
  for await (const event of client.follow(id, runId)) {
    seen.push(event)
    if (textOf(seen).includes(' 5')) break
  }
  expect(await gateway.kill('SIGKILL')).toMatchObject({ signal: 'SIGKILL' })

  const again = await Client.connect((await startGateway({ directory })).url)
  const chat = await again.chat(id)
  expect(chat).toMatchObject({ activeRunId: null, pendingUserMessage: null })
  expect(chat.toolCalls).toMatchObject([{ name: 'calculator', args: { expression: '17 * 23' }, done: true }])
  const [, , question, ...rest] = chat.messages
  expect(question).toMatchObject({ role: 'user', content: QUESTION })
  const said = rest.filter(({ interruption }) => interruption === undefined)
  // At least what the user saw: the last words may have been written and not yet sent.
  expect(said.map(({ content }) => content).join('')).toContain(textOf(seen))
  for (const message of said) expect(message).toMatchObject({ partial: true, recovered: { runId } })
  expect(rest.at(-1)?.interruption).toEqual({ state: 'recovered' })

  // A reader that had lost its connection goes on behind its cursor and is told that it is over.
  const last = seen.at(-1)?.id ?? 0
  const missed: StreamEvent[] = []
  for await (const event of again.follow(id, runId, { lastEventId: last })) missed.push(event)
  expect(missed.at(-1)?.event).toBe('end')
  expect(missed.every(({ id: seq }) => seq === undefined || seq > last)).toBe(true)

  expect(textOf(await again.ask(id, 'count to 3'))).toBe('1 2 3')
  expect((await again.chat(id)).memory).toMatchObject({ generation: 2 })
  await again.newChat(id)
  await until('the finished turns are learned', async () => (await again.facts()).includes('I live in Lisbon'))
})

test('T1: kill -9 before anything was said: the words of the user are kept', async () => {
  const directory = await temporaryDirectory()
  const gateway = await startGateway({ directory })
  const client = await Client.connect(gateway.url)
  const id = await client.newChat()
  await client.begin(id, 'Tell me a story slowly')
  await gateway.kill('SIGKILL')

  const again = await Client.connect((await startGateway({ directory })).url)
  const { messages } = await again.chat(id)
  expect(messages[0]).toMatchObject({ role: 'user', content: 'Tell me a story slowly' })
  expect(messages.at(-1)?.interruption).toBeDefined()
  expect(await again.send('POST', `/api/sessions/${id}/retry`)).toMatchObject({
    status: 202,
    body: { text: 'Tell me a story slowly' },
  })
})

test('R1: turns that were finished and never left are learned after kill -9', async () => {
  const directory = await temporaryDirectory()
  const gateway = await startGateway({ directory })
  const client = await Client.connect(gateway.url)
  const ids = await Promise.all(Array.from({ length: 20 }, () => client.newChat()))
  await Promise.all(ids.map((id, at) => client.ask(id, `I live in Town${at}.`)))
  await gateway.kill('SIGKILL')

  const again = await Client.connect((await startGateway({ directory })).url)
  await until('all are learned', async () => (await again.facts()).length === 20)
})
