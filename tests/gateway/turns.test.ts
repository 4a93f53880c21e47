import { describe, expect, test } from 'vitest'
import type { Memory } from '../../examples/gateway/memory/memory.js'
import { ModelError } from '../../examples/gateway/model/model.js'
import { type StreamEvent, textOf } from './support/client.js'
import { startInProcess, steppedModel, until } from './support/in-process.js'

const text = (said: string) => ({ type: 'text' as const, text: said })

/** Every commit waits for ever, as behind a provider that hangs. */
function hangingMemory(memory: Memory): Memory {
  return {
    ...memory,
    agent: (sessionId) => ({ ...memory.agent(sessionId), commitMemorySession: () => new Promise(() => undefined) }),
  }
}

describe('a turn', () => {
  test('is streamed, kept in the transcript and marked for memory', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    const events = await client.ask(id, 'I live in Lisbon.')
    expect(textOf(events)).toContain('you live in Lisbon')
    expect(events.slice(-2).map(({ event }) => event)).toEqual(['done', 'end'])
    expect(await client.chat(id)).toMatchObject({
      title: 'I live in Lisbon.',
      messages: [
        { role: 'user', content: 'I live in Lisbon.' },
        { role: 'assistant', content: textOf(events) },
      ],
      activeRunId: null,
      pendingUserMessage: null,
      memory: { generation: 1, watermark: 0, waiting: 1 },
    })
  })

  test('of one chat is recalled in another, once the first was left', async () => {
    const { client } = await startInProcess()
    const first = await client.newChat()
    await client.ask(first, 'I live in Lisbon.')
    const second = await client.newChat(first)
    await until('the first chat is learned', async () => (await client.facts()).includes('I live in Lisbon'))
    const events = await client.ask(second, 'Where do I live?')
    expect(events[0]).toMatchObject({ event: 'tool', data: { name: 'recall', args: { facts: ['I live in Lisbon'] } } })
    expect(textOf(events)).toBe('You told me: “I live in Lisbon” (from memory).')
    expect((await client.chat(second)).toolCalls).toMatchObject([{ name: 'recall', done: true }])
    expect((await client.chat(first)).memory).toMatchObject({ waiting: 0, watermark: 1 })
  })

  test('calls a local tool, shows it as a card and goes on with its result', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    const events = await client.ask(id, 'What is (17 + 4) * 23?')
    expect(events.map(({ event }) => event).slice(0, 3)).toEqual(['tool', 'tool_complete', 'token'])
    expect(textOf(events)).toBe('(17 + 4) * 23 = 483.')
    expect((await client.chat(id)).toolCalls).toMatchObject([
      { name: 'calculator', args: { expression: '(17 + 4) * 23' }, preview: '483', done: true, isError: false },
    ])
  })

  test('is refused while another one runs in the same chat, and changes nothing', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    const runId = await client.begin(id, 'first')
    for (const path of ['turns', 'undo', 'retry']) {
      const body = path === 'turns' ? { text: 'second' } : undefined
      const refused = await client.send('POST', `/api/sessions/${id}/${path}`, body)
      expect(refused).toMatchObject({ status: 409, body: { error: { code: 'BUSY' } } })
    }
    expect(await client.chat(id)).toMatchObject({ pendingUserMessage: 'first', activeRunId: runId })
  })

  test('whose model fails keeps what was said, says why, and is not marked', async () => {
    const model = {
      name: 'failing',
      async *answer() {
        yield text('So far')
        throw new ModelError('the endpoint answered with HTTP 503')
      },
    }
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    const events = await client.ask(id, 'Hello?')
    expect(events.map(({ event }) => event)).toContain('error')
    const chat = await client.chat(id)
    expect(chat).toMatchObject({
      activeRunId: null,
      memory: { generation: 0 },
      messages: [
        { role: 'user', content: 'Hello?' },
        { role: 'assistant', content: 'So far', partial: true },
        { content: 'The answer failed: the endpoint answered with HTTP 503. Retry to ask again.' },
      ],
    })
    expect(chat.messages[2]?.interruption).toBeDefined()
  })

  test('goes on without memory when recalling fails', async () => {
    const broken = (memory: Memory): Memory => ({ ...memory, recall: () => Promise.reject(new Error('away')) })
    const { client, logger } = await startInProcess({ wrapMemory: broken })
    const id = await client.newChat()
    const events = await client.ask(id, 'count to 3')
    expect(textOf(events)).toBe('1 2 3')
    expect(events[1]).toMatchObject({ event: 'tool_complete', data: { name: 'recall', isError: true } })
    expect(logger.text()).toContain('nothing could be recalled')
  })
})

describe('following an answer', () => {
  test('a reader that comes back with its cursor gets each event once', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    const runId = await client.begin(id, 'go')
    model.say(text('one '), text('two '), text('three '))
    const seen: StreamEvent[] = []
    for await (const event of client.follow(id, runId)) {
      seen.push(event)
      if (seen.length === 2) break
    }
    model.say(text('four'))
    model.finish()
    for await (const event of client.follow(id, runId, { lastEventId: 2 })) seen.push(event)
    expect(textOf(seen)).toBe('one two three four')
    expect(seen.map(({ id: seq }) => seq)).toEqual([1, 2, 3, 4, 5, undefined])
  })

  test('the cursor may stand in the address, for clients without Last-Event-ID', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    const runId = await client.begin(id, 'count to 5')
    const all: StreamEvent[] = []
    for await (const event of client.follow(id, runId)) all.push(event)
    const rest: StreamEvent[] = []
    for await (const event of client.follow(id, runId, { after: 3 })) rest.push(event)
    expect(textOf(rest)).toBe(' 4 5')
    expect(rest).toEqual(all.slice(3))
  })

  test('many readers see the same events in the same order, whenever they come', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    const runId = await client.begin(id, 'go')
    const read = async (): Promise<StreamEvent[]> => {
      const events: StreamEvent[] = []
      for await (const event of client.follow(id, runId)) events.push(event)
      return events
    }
    const readers = [read()]
    for (let step = 0; step < 20; step++) {
      model.say(text(`${step} `), text('| '))
      if (step % 4 === 0) readers.push(read())
    }
    model.finish()
    const [first, ...others] = await Promise.all(readers)
    expect(textOf(first ?? [])).toBe(Array.from({ length: 20 }, (_, step) => `${step} | `).join(''))
    for (const other of others) expect(other).toEqual(first)
  })
})

describe('cancel', () => {
  test('keeps the words of the user and what was said, marks it partial, and marks no turn for memory', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    const runId = await client.begin(id, 'a long story')
    model.say(text('Once upon a time'))
    for await (const { event } of client.follow(id, runId)) if (event === 'token') break
    expect(await client.send('POST', `/api/sessions/${id}/runs/${runId}/cancel`)).toMatchObject({ status: 204 })
    expect(await client.chat(id)).toMatchObject({
      activeRunId: null,
      pendingUserMessage: null,
      memory: { generation: 0 },
      messages: [
        { role: 'user', content: 'a long story' },
        { role: 'assistant', content: 'Once upon a time', partial: true },
      ],
    })
  })

  test('of an answer that does not run is refused', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    await client.ask(id, 'count to 2')
    const refused = await client.send('POST', `/api/sessions/${id}/runs/nobody/cancel`)
    expect(refused).toMatchObject({ status: 404, body: { error: { code: 'NOT_FOUND' } } })
  })
})

describe('undo and retry', () => {
  test('L13: an undone turn is gone from the chat and never learned', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    await client.ask(id, 'I live in Lisbon.')
    await client.ask(id, 'I live in Porto.')
    const undone = await client.send('POST', `/api/sessions/${id}/undo`)
    expect(undone).toMatchObject({ status: 200, body: { text: 'I live in Porto.', retracted: 1, offered: 0 } })
    expect((await client.chat(id)).messages).toHaveLength(2)
    await client.newChat(id)
    await until('the chat is learned', async () => (await client.chat(id)).memory.waiting === 0)
    expect(await client.facts()).toEqual(['I live in Lisbon'])
  })

  test('L13: an undo of a turn that memory has seen says so', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    await client.ask(id, 'I live in Lisbon.')
    await client.newChat(id)
    await until('the chat is learned', async () => (await client.facts()).length === 1)
    const undone = await client.send('POST', `/api/sessions/${id}/undo`)
    expect(undone).toMatchObject({ status: 200, body: { retracted: 0, offered: 1 } })
    expect((await client.chat(id)).messages).toEqual([])
  })

  test('L13: a retry asks the same again and leaves one turn for memory', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const id = await client.newChat()
    for (const answer of ['bad', 'good']) {
      model.say(text(answer))
      model.finish()
      if (answer === 'bad') await client.ask(id, 'I live in Lisbon.')
    }
    const retried = await client.send<{ runId: string }>('POST', `/api/sessions/${id}/retry`)
    expect(retried).toMatchObject({ status: 202, body: { text: 'I live in Lisbon.', retracted: 1 } })
    for await (const { event } of client.follow(id, retried.body.runId)) if (event === 'end') break
    expect(await client.chat(id)).toMatchObject({
      messages: [{ content: 'I live in Lisbon.' }, { content: 'good' }],
      memory: { generation: 2, waiting: 1 },
    })
  })

  test('with nothing said yet there is nothing to undo', async () => {
    const { client } = await startInProcess()
    const id = await client.newChat()
    const refused = await client.send('POST', `/api/sessions/${id}/undo`)
    expect(refused).toMatchObject({ status: 409, body: { error: { code: 'NOTHING_TO_UNDO' } } })
  })
})

describe('new chat', () => {
  test('B2: answers while the provider hangs, and the chat before it is being committed', async () => {
    const { client, gateway } = await startInProcess({ wrapMemory: hangingMemory })
    const first = await client.newChat()
    await client.ask(first, 'I live in Lisbon.')
    const second = await client.newChat(first)
    await until('the commit is under way', async () => (await gateway.lifecycle.inspect(first))?.inFlight === true)
    expect((await client.ask(second, 'count to 2')).at(-1)?.event).toBe('end')
    expect((await client.chat(first)).memory).toMatchObject({ waiting: 1, watermark: 0 })
  })

  test('while an answer is being written, the boundary comes behind that answer', async () => {
    const model = steppedModel()
    const { client } = await startInProcess({ model })
    const first = await client.newChat()
    const runId = await client.begin(first, 'I live in Lisbon.')
    await client.newChat(first)
    model.say(text('Noted.'))
    model.finish()
    for await (const { event } of client.follow(first, runId)) if (event === 'end') break
    await until('the turn is learned', async () => (await client.facts()).includes('I live in Lisbon'))
  })
})

describe('between the transcript and the mark', () => {
  test('R5: a turn that was saved and not marked is marked at the next start, once', async () => {
    const first = await startInProcess()
    const { client, directory, gateway } = first
    const id = await client.newChat()
    await client.ask(id, 'I live in Lisbon.')
    // As a crash leaves it: the answer is in the transcript, and the ledger knows nothing of the turn.
    const { runId } = await gateway.sessions.beginTurn(id, { text: 'My dog is called Rex.' })
    await gateway.sessions.endTurn(id, runId, [
      { role: 'assistant', content: 'Noted.', attachments: [{ kind: 'turn', runId, generation: 2 }] },
    ])
    await first.close()

    const second = await startInProcess({ directory })
    await second.gateway.turns.recover(new AbortController().signal)
    await second.gateway.turns.recover(new AbortController().signal)
    expect((await second.client.chat(id)).memory).toMatchObject({ generation: 2 })
    await second.client.newChat(id)
    await until('both are learned', async () => (await second.client.facts()).length === 2)
    expect(await second.client.facts()).toEqual(expect.arrayContaining(['I live in Lisbon', 'My dog is called Rex']))
  })
})
