import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

interface ChatRequest {
  readonly messages: readonly { readonly role: string; readonly content: string }[]
}

/** A tiny endpoint in place of a model, so that the example runs without one: every sentence with "I" is a fact. */
export async function startStandIn(): Promise<{ baseUrl: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as ChatRequest
      const said = messages.at(-1)?.content ?? ''
      const facts = [...said.matchAll(/^user: (.*)$/gm)]
        .flatMap(([, line = '']) => line.split(/(?<=[.!?])\s+/))
        .filter((sentence) => /\bI\b/.test(sentence) && !sentence.endsWith('?'))
        .map((sentence) => ({
          content: sentence.replace(/\bI\b/g, 'The user').replace(/[.!]$/, ''),
          category: 'user_pref',
        }))
      response.setHeader('content-type', 'application/json')
      response.end(
        JSON.stringify({ choices: [{ message: { role: 'assistant', content: JSON.stringify({ facts }) } }] }),
      )
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
