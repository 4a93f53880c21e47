import { startOpenVikingDouble } from 'tidemark/testing'
import { expect, onTestFinished, test } from 'vitest'
import { openVikingMemory } from '../../examples/gateway/memory/openviking.js'
import { startInProcess, until } from './support/in-process.js'

test('with OpenViking: a chat that was left is extracted once, and recalled in the next one', async () => {
  const double = await startOpenVikingDouble()
  onTestFinished(() => double.close())
  const { client } = await startInProcess({
    openMemory: () => openVikingMemory({ endpoint: double.url, apiKey: undefined }),
  })
  const first = await client.newChat()
  await client.ask(first, 'I live in Lisbon.')
  const second = await client.newChat(first)
  await until('the turn is extracted and settled', async () => (await client.chat(first)).memory.watermark === 1)
  expect(Object.values(double.stats.extracted)).toEqual([1])
  const [card] = await client.ask(second, 'Tell me about Lisbon')
  expect(card).toMatchObject({ event: 'tool', data: { name: 'recall' } })
  expect(JSON.stringify(card?.data)).toContain('I live in Lisbon')
  expect((await client.send('GET', '/api/memory/facts')).body).toEqual({ facts: null })
})

test('with OpenViking away: the chat goes on, and its turns are kept', async () => {
  const { client } = await startInProcess({
    openMemory: () => openVikingMemory({ endpoint: 'http://127.0.0.1:9', apiKey: undefined }),
  })
  const id = await client.newChat()
  const events = await client.ask(id, 'count to 3')
  expect(events[1]).toMatchObject({ event: 'tool_complete', data: { name: 'recall', isError: true } })
  await client.newChat(id)
  expect((await client.chat(id)).memory).toMatchObject({ generation: 1, watermark: 0, waiting: 1 })
})
