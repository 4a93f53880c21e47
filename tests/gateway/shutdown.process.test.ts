import { expect, test } from 'vitest'
import { temporaryDirectory } from '../support/temporary.js'
import { Client } from './support/client.js'
import { startGateway } from './support/gateway-process.js'
import { until } from './support/in-process.js'

const SCRIPT = 'tests/gateway/support/slow-gateway.ts'

/** Chats that were said something in and never left: all of them are dirty. */
async function dirtyChats(url: string, count: number): Promise<void> {
  const client = await Client.connect(url)
  for (let at = 0; at < count; at += 20) {
    await Promise.all(
      Array.from({ length: Math.min(20, count - at) }, async (_, offset) => {
        await client.ask(await client.newChat(), `I live in Town${at + offset}.`)
      }),
    )
  }
}

async function health(client: Client): Promise<{ dirtySessions: number }> {
  return (await client.send<{ dirtySessions: number }>('GET', '/api/health')).body
}

test('D1: SIGTERM with 200 dirty chats and a 50 ms provider hands everything over, says so, and exits with 0', async () => {
  const directory = await temporaryDirectory()
  const env = { COMMIT_MS: '50', SHUTDOWN_DEADLINE_MS: '20000', LOG_LEVEL: 'info' }
  const gateway = await startGateway({ directory, script: SCRIPT, env })
  await dirtyChats(gateway.url, 200)
  const { code, output } = await gateway.kill('SIGTERM')
  expect(output).toContain('shut down: everything was handed over')
  expect(output).toMatch(/Stopped after \d+ ms: \d+ stretches of conversation handed to memory, nothing is left\./)
  expect(code).toBe(0)

  const next = await startGateway({ directory, script: SCRIPT, env })
  const client = await Client.connect(next.url)
  expect(await health(client)).toMatchObject({ dirtySessions: 0 })
  expect((await client.facts()).length).toBe(100)
})

test('D3: with a deadline that is too short it exits with 1 and says what is left; the next start learns the rest', async () => {
  const directory = await temporaryDirectory()
  const gateway = await startGateway({
    directory,
    script: SCRIPT,
    env: { COMMIT_MS: '60000', SHUTDOWN_DEADLINE_MS: '1000', LOG_LEVEL: 'info' },
  })
  await dirtyChats(gateway.url, 40)
  const { code, output } = await gateway.kill('SIGTERM')
  expect(output).toMatch(/40 are left for the next start \(exit code 1\)\./)
  expect(code).toBe(1)

  const next = await startGateway({ directory, script: SCRIPT, env: { COMMIT_MS: '1' } })
  const client = await Client.connect(next.url)
  await until('the next start has learned the rest', async () => (await health(client)).dirtySessions === 0)
  expect(await client.facts()).toHaveLength(40)
})

test('D6: a second signal exits at once, and nothing that was finished is lost', async () => {
  const directory = await temporaryDirectory()
  const gateway = await startGateway({
    directory,
    script: SCRIPT,
    env: { COMMIT_MS: '60000', SHUTDOWN_DEADLINE_MS: '60000', LOG_LEVEL: 'info' },
  })
  await dirtyChats(gateway.url, 1)
  const exit = gateway.kill('SIGINT')
  await until('the drain has begun', async () => gateway.output().includes('shutting down'))
  void gateway.kill('SIGINT')
  expect(await exit).toMatchObject({ code: 130 })

  const next = await startGateway({ directory, script: SCRIPT, env: { COMMIT_MS: '1' } })
  const client = await Client.connect(next.url)
  await until('it is learned after all', async () => (await client.facts()).length === 1)
})

test('SIGTERM in the middle of a slow answer: it is interrupted, kept, and shown as such by the next start', async () => {
  const directory = await temporaryDirectory()
  const env = { COMMIT_MS: '1', SHUTDOWN_DEADLINE_MS: '1000' }
  const gateway = await startGateway({ directory, script: SCRIPT, env })
  const client = await Client.connect(gateway.url)
  const id = await client.newChat()
  const runId = await client.begin(id, 'Tell me a story slowly')
  for await (const { event } of client.follow(id, runId)) if (event === 'token') break
  expect(await gateway.kill('SIGTERM')).toMatchObject({ code: 0 })

  const next = await Client.connect((await startGateway({ directory, script: SCRIPT, env })).url)
  const { messages, activeRunId, memory } = await next.chat(id)
  expect(activeRunId).toBeNull()
  expect(memory.generation).toBe(0)
  expect(messages).toMatchObject([
    { role: 'user', content: 'Tell me a story slowly' },
    { role: 'assistant', content: expect.stringMatching(/^At low tide/) as string, partial: true },
    { role: 'assistant', interruption: { state: 'recovered' } },
  ])
})
