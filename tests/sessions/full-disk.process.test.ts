import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore } from '../../src/sessions/index.js'
import { smallDisk } from '../support/small-disk.js'
import { user } from './support.js'

test('S2: on a full disk a save is refused, the saved session stays whole, and saving goes on when there is room', async (context) => {
  const directory = await smallDisk(context, 1)
  const store = await SessionStore.open({ directory })
  const ballast = join(directory, 'ballast')
  await writeFile(ballast, Buffer.alloc(700 * 1024))
  const session = await store.create({ id: 's' })
  let saved = 0
  let refusal: unknown
  while (refusal === undefined) {
    session.messages.push(user(`${session.messages.length} ${'x'.repeat(3_000)}`))
    await store.save(session).then(
      () => (saved = session.messages.length),
      (error: unknown) => (refusal = error),
    )
  }
  expect(refusal).toMatchObject({ code: 'WRITE_FAILED' })
  expect(saved).toBeGreaterThan(10)
  expect(await readdir(join(directory, 'sessions'))).toEqual(['s.jsonl'])
  await store.close()
  const again = await SessionStore.open({ directory })
  const read = (await again.get('s'))!
  expect(read.messages).toEqual(session.messages.slice(0, saved))
  await rm(ballast)
  read.messages.push(user('room again'))
  await again.save(read, { fsync: true })
  await again.close()
  const third = await SessionStore.open({ directory })
  expect((await third.get('s'))?.messages).toHaveLength(saved + 1)
  await third.close()
})

test('J1: on a full disk an event is refused and leaves no gap', async (context) => {
  const directory = await smallDisk(context, 1)
  const journal = await RunJournal.open({ directory: join(directory, 'journal') })
  const ballast = join(directory, 'ballast')
  await writeFile(ballast, Buffer.alloc(900 * 1024))
  let last = 0
  let refusal: unknown
  while (refusal === undefined) {
    await journal.append('s', 'r', 'token', { text: 'x'.repeat(3_000) }).then(
      ({ seq }) => (last = seq),
      (error: unknown) => (refusal = error),
    )
  }
  expect(refusal).toMatchObject({ code: 'WRITE_FAILED' })
  await rm(ballast)
  expect(await journal.append('s', 'r', 'done', {})).toEqual({ seq: last + 1 })
  expect(await journal.summary('s', 'r')).toEqual({ state: 'completed', lastSeq: last + 1, damaged: [] })
  await journal.close()
})
