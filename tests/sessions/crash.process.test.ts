import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { contextMessages, SessionStore } from '../../src/sessions/index.js'
import { startChild, type Child } from '../support/child.js'
import { temporaryDirectory } from '../support/temporary.js'

const WRITER = new URL('./writer.child.ts', import.meta.url)
const rounds = Number(process.env['TIDEMARK_KILLS'] ?? 3)

const startWriter = (directory: string, mode: string) => startChild(WRITER, [directory, mode])
const acknowledged = (child: Child) => Number(child.lines.at(-1)?.slice('ack '.length) ?? 0)
const reached = (child: Child, n: number) => child.line((line) => line === `ack ${n}`, `acknowledgement ${n}`)

async function killAt(child: Child, n: number): Promise<number> {
  await reached(child, n)
  child.kill('SIGKILL')
  await child.ended
  return acknowledged(child)
}

describe('a process that is killed', () => {
  test('S9: another process is refused and told who holds the store; stopped it stays the holder, killed it is free at once', async () => {
    const directory = await temporaryDirectory()
    const child = startWriter(directory, 'unsynced')
    await reached(child, 1)
    const open = () => SessionStore.open({ directory: join(directory, 'store') })
    const refused = { code: 'LOCKED', message: expect.stringContaining(`process ${child.pid}`) as string }
    await expect(open()).rejects.toMatchObject(refused)
    child.kill('SIGSTOP')
    await expect(open()).rejects.toMatchObject(refused)
    await expect(open()).rejects.toMatchObject(refused)
    child.kill('SIGKILL')
    await child.ended
    await (await open()).close()
  })

  test.each(['durable', 'unsynced'])('S2: loses no acknowledged save (%s), round after round', async (mode) => {
    const directory = await temporaryDirectory()
    let known = 0
    for (let round = 1; round <= rounds; round++) {
      known = await killAt(startWriter(directory, mode), known + 20 * round)
      const damages: unknown[] = []
      const store = await SessionStore.open({
        directory: join(directory, 'store'),
        onDamage: (damage) => damages.push(damage),
      })
      const found = (await store.get('s'))!.messages
      await store.close()
      expect(damages).toEqual([])
      expect(found.length).toBeGreaterThanOrEqual(known)
      found.forEach(({ content, timestamp }, at) => {
        expect(timestamp).toBe(at + 1)
        expect(content).toBe(`message ${at + 1} ${'x'.repeat((at + 1) % 500)}`)
      })
      known = found.length
    }
  })

  test('J1: loses no acknowledged token, and the journal has no gap', async () => {
    const directory = await temporaryDirectory()
    const known = await killAt(startWriter(directory, 'tokens'), 100)
    const journal = await RunJournal.open({ directory: join(directory, 'journal') })
    const seqs: number[] = []
    for await (const { seq } of journal.read('s', 'r')) seqs.push(seq)
    await journal.close()
    expect(seqs.length).toBeGreaterThanOrEqual(known)
    expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, n) => n + 1))
  })

  test("Y1: in the middle of a stream leaves the user's words, the tokens already seen and the tool cards in place", async () => {
    const directory = await temporaryDirectory()
    const known = await killAt(startWriter(directory, 'stream'), 25)
    const journal = await RunJournal.open({ directory: join(directory, 'journal') })
    const store = await SessionStore.open({
      directory: join(directory, 'store'),
      journal,
      recovery: { graceMs: 0 },
      // The child began its turn on the real clock, perhaps in this very millisecond.
      clock: { now: () => Date.now() + 1, setTimer: () => () => undefined },
    })
    const session = (await store.get('s'))!
    await store.close()
    await journal.close()
    const [asked, first, second, third, marker] = session.messages
    expect(asked).toMatchObject({ role: 'user', content: 'How is the weather?', attachments: [{ name: 'map.png' }] })
    expect(first).toMatchObject({ content: 'Let me look at the sky. ', partial: true, recovered: { runId: 'r' } })
    expect(second?.content).toBe('It is ')
    expect(third?.content.split(' ').slice(0, known)).toEqual(Array.from({ length: known }, (_, n) => `wet${n + 1}`))
    expect(marker?.interruption).toEqual({ state: 'recovered' })
    expect(session.messages).toHaveLength(5)
    expect(session.toolCalls).toEqual([
      { name: 'look', preview: 'the sky', args: { where: 'up' }, done: true, durationMs: 12, messageIndex: 1 },
      { name: 'measure', done: false, messageIndex: 2 },
    ])
    expect(contextMessages(session)).toHaveLength(4)
    expect(session).toMatchObject({ title: 'stream', activeRunId: null, pendingUserMessage: null })
  })
})
