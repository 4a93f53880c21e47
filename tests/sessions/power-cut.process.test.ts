import { join } from 'node:path'
import { describe, expect, test, type TestContext } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore, type DamageReport } from '../../src/sessions/index.js'
import { startChild, type Child } from '../support/child.js'
import { openPowerCutRig } from '../support/power-cut.js'

const WRITER = new URL('./writer.child.ts', import.meta.url)
const cuts = Number(process.env['TIDEMARK_CUTS'] ?? 3)

const acknowledged = (child: Child) => Number(child.lines.at(-1)?.slice('ack '.length) ?? 0)

/** Cuts the power several times while a writer works: what was acknowledged before, and what is there after. */
async function* powerCuts(context: TestContext, mode: string, kind: 'xfs' | 'ext4') {
  const rig = await openPowerCutRig(context, kind)
  const child = startChild(WRITER, [rig.directory, mode])
  for (let cut = 1; cut <= cuts; cut++) {
    const goal = acknowledged(child) + 30
    await child.line((line) => line === `ack ${goal}`, `acknowledgement ${goal}`)
    const known = acknowledged(child)
    yield { known, directory: await rig.cut() }
  }
  child.kill('SIGKILL')
  await child.ended
}

async function readMessages(directory: string) {
  const damages: DamageReport[] = []
  const store = await SessionStore.open({
    directory: join(directory, 'store'),
    onDamage: (damage) => damages.push(damage),
  })
  const session = await store.get('s')
  await store.close()
  return { messages: session?.messages ?? [], damages }
}

describe.each(['xfs', 'ext4'] as const)('a power cut on %s', (kind) => {
  test('S3: loses no save that was acknowledged with fsync, and what is there has no hole', async (context) => {
    for await (const { known, directory } of powerCuts(context, 'durable', kind)) {
      const { messages } = await readMessages(directory)
      expect(messages.length).toBeGreaterThanOrEqual(known)
      expect(messages.map(({ timestamp }) => timestamp)).toEqual(messages.map((_, at) => at + 1))
    }
  })

  test('S3: control: without fsync the same saves are lost, so these cuts do cut', async (context) => {
    let lost = 0
    for await (const { known, directory } of powerCuts(context, 'unsynced', kind)) {
      const { messages } = await readMessages(directory)
      if (messages.length < known) lost += 1
      expect(messages.map(({ timestamp }) => timestamp)).toEqual(messages.map((_, at) => at + 1))
    }
    expect(lost).toBeGreaterThan(0)
  })

  test('S2: without fsync the newest saves may go, the last durable version never', async (context) => {
    for await (const { directory } of powerCuts(context, 'lazy', kind)) {
      const { messages } = await readMessages(directory)
      const durable = Array.from({ length: 20 }, (_, n) => `message ${n + 1}`)
      expect(messages.slice(0, 20).map(({ content }) => content)).toEqual(durable)
      for (const { content, timestamp } of messages.slice(20))
        expect(content.startsWith(`lazy ${timestamp} `)).toBe(true)
    }
  })

  test('J3: loses no run whose end was acknowledged, nor any of its tokens', async (context) => {
    for await (const { known, directory } of powerCuts(context, 'runs', kind)) {
      const journal = await RunJournal.open({ directory: join(directory, 'journal') })
      for (let run = 1; run <= known; run++) {
        expect(await journal.summary('s', `r${run}`)).toEqual({ state: 'completed', lastSeq: 4, damaged: [] })
      }
      await journal.close()
    }
  })

  test('J3: control: tokens without an end are lost, and what is there has no wrong one', async (context) => {
    let lost = 0
    for await (const { known, directory } of powerCuts(context, 'tokens', kind)) {
      const journal = await RunJournal.open({ directory: join(directory, 'journal') })
      let found = 0
      for await (const { seq, payload } of journal.read('s', 'r')) {
        expect(payload).toEqual({ text: `${seq} ` })
        found += 1
      }
      await journal.close()
      if (found < known) lost += 1
    }
    expect(lost).toBeGreaterThan(0)
  })
})
