import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { llmExtractor } from '../../examples/llm-extractor/extractor.js'
import { startStandIn } from '../../examples/llm-extractor/stand-in.js'
import { commitOf, contents, openMemory, turn, user } from './helpers.js'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** A real endpoint that answers what the test wants. */
async function serve(status: number, answer: unknown): Promise<string> {
  const server: Server = createServer((_, response) => {
    response.statusCode = status
    response.end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(() => resolve())))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

const said = [turn(1, user('I moved to Lisbon. What now?'))]
const completion = (content: unknown) => ({ choices: [{ message: { content } }] })

describe('the example of an extractor with a model', () => {
  it('better 3: stores what the stand-in endpoint finds', async () => {
    const standIn = await startStandIn()
    closing.push(standIn.close)
    const memory = await openMemory({ extract: llmExtractor({ baseUrl: standIn.baseUrl, model: 'any' }) })
    expect(await memory.agent('s').commitMemorySession(commitOf('k', said))).toEqual({ status: 'committed' })
    expect(contents(await memory.list())).toEqual(['The user moved to Lisbon'])
  })

  it('reads facts out of a fenced answer too', async () => {
    const baseUrl = await serve(200, completion('```json\n{"facts":[{"content":"tea is liked"}]}\n```'))
    const memory = await openMemory({ extract: llmExtractor({ baseUrl, model: 'any', apiKey: 'x' }) })
    await memory.agent('s').commitMemorySession(commitOf('k', said))
    expect(contents(await memory.list())).toEqual(['tea is liked'])
  })

  it.each([
    ['an error', 500, {}],
    ['no text', 200, {}],
    ['no JSON', 200, completion('I found nothing, sorry')],
    ['no list', 200, completion('{"facts":7}')],
    ['a fact without content', 200, completion('{"facts":[{}]}')],
  ])('after %s the segment is not recorded, so that it can be tried again', async (_, status, answer) => {
    const standIn = await startStandIn()
    closing.push(standIn.close)
    const failing = llmExtractor({ baseUrl: await serve(status, answer), model: 'any' })
    const working = llmExtractor({ baseUrl: standIn.baseUrl, model: 'any' })
    let attempts = 0
    const memory = await openMemory({
      extract: (turns, context) => (++attempts === 1 ? failing : working)(turns, context),
    })
    await expect(memory.agent('s').commitMemorySession(commitOf('k', said))).rejects.toThrow()
    expect(await memory.list()).toEqual([])
    expect(await memory.agent('s').commitMemorySession(commitOf('k', said))).toEqual({ status: 'committed' })
    expect(contents(await memory.list())).toEqual(['The user moved to Lisbon'])
  })
})
