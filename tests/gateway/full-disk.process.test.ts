import { appendFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { smallDisk } from '../support/small-disk.js'
import { Client, type StreamEvent, textOf } from './support/client.js'
import { startGateway } from './support/gateway-process.js'

test('a disk that fills up in the middle of an answer: people are told, and the chat goes on when there is room', async (context) => {
  const disk = await smallDisk(context, 4)
  const ballast = join(disk, 'ballast')
  const gateway = await startGateway({ directory: join(disk, 'state') })
  const client = await Client.connect(gateway.url)
  const id = await client.newChat()
  await client.ask(id, 'I live in Lisbon.')
  const runId = await client.begin(id, 'count to 500')
  const seen: StreamEvent[] = []
  for await (const event of client.follow(id, runId)) {
    seen.push(event)
    if (seen.length === 1) await fill(ballast)
  }
  expect(textOf(seen)).toMatch(/^1 2 3 /)
  expect(textOf(seen)).not.toContain('500')
  const refused = { status: 507, body: { error: { message: expect.stringContaining('Is the disk full?') as string } } }
  expect(await client.send('POST', '/api/sessions', {})).toMatchObject(refused)

  await rm(ballast)
  expect(textOf(await client.ask(id, 'count to 3'))).toBe('1 2 3')
  const { messages, activeRunId } = await client.chat(id)
  expect(activeRunId).toBeNull()
  expect(messages.slice(2)).toMatchObject([
    { role: 'user', content: 'count to 500' },
    { role: 'assistant', content: textOf(seen), partial: true },
    { role: 'user', content: 'count to 3' },
    { role: 'assistant', content: '1 2 3' },
  ])
  expect(await gateway.kill('SIGTERM')).toMatchObject({ code: 0 })
})

async function fill(path: string): Promise<void> {
  const append = (): Promise<boolean> =>
    appendFile(path, Buffer.alloc(4_096)).then(
      () => true,
      () => false,
    )
  while (await append());
}
