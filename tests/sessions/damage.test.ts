import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { DamageReport, Message } from '../../src/sessions/index.js'
import { assistant, openStore, user } from './support.js'

const MESSAGES: Message[] = [
  user('first'),
  assistant('zweite, größer'),
  { ...user('third'), attachments: [{ name: 'x' }] },
  assistant('fourth'),
  user('fifth'),
]

/** A small session: two messages when its file was made, then three saves. */
async function smallSession() {
  const damages: DamageReport[] = []
  const opened = await openStore({ onDamage: (damage) => damages.push(damage) })
  const session = await opened.store.create({ id: 'whole', title: 'small', messages: MESSAGES.slice(0, 2) })
  await opened.store.save(session)
  for (const message of MESSAGES.slice(2)) {
    session.messages.push(message)
    await opened.store.save(session, { touch: false })
  }
  const bytes = await readFile(opened.fileOf('whole'))
  /** Loads these bytes as a session of their own. */
  const load = async (id: string, content: Buffer) => {
    await writeFile(opened.fileOf(id), content)
    damages.length = 0
    const loaded = await opened.store.get(id)
    return { messages: loaded?.messages, damage: damages[0] }
  }
  return { ...opened, bytes, load, damages }
}

describe('a damaged transcript', () => {
  test('S8: is recovered up to the last whole record, copied aside, reported, and can be saved again', async () => {
    const { store, bytes, load, fileOf, logger, reopen } = await smallSession()
    const damaged = Buffer.from(bytes)
    damaged[damaged.indexOf('fourth')] = 0x58
    const { messages, damage } = await load('a', damaged)
    expect(messages).toEqual(MESSAGES.slice(0, 3))
    expect(damage).toMatchObject({ sessionId: 'a', path: fileOf('a'), messagesKept: 3, line: 6 })
    expect(await readFile(damage!.copy!)).toEqual(damaged)
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ sessionId: 'a' }) as object }),
    )
    await store.update('a', (session) => void session.messages.push(user('goes on')))
    const again = await reopen()
    expect((await again.store.get('a'))?.messages).toEqual([...MESSAGES.slice(0, 3), user('goes on')])
  })

  test('S8: flipping any byte never throws, never shows a wrong message, and is never silent', async () => {
    const { bytes, load } = await smallSession()
    let empty = 0
    for (let at = 0; at < bytes.length; at++) {
      for (const mask of new Set([0x01, 0x20, bytes[at]! ^ 0x0a, bytes[at]!])) {
        if (mask === 0) continue
        const flipped = Buffer.from(bytes)
        flipped[at] = flipped[at]! ^ mask
        const { messages, damage } = await load(`f${at}-${mask}`, flipped)
        expect(messages, `byte ${at} with ${mask}`).toEqual(MESSAGES.slice(0, messages?.length))
        expect(damage, `byte ${at} with ${mask}`).toBeDefined()
        if (messages?.length === 0) empty += 1
      }
    }
    // Only what stands in the first record, or joins it to the line before, costs everything.
    expect(empty).toBeLessThan(bytes.indexOf('first') * 4)
  })

  test('S8: cutting the file at any byte gives an older state; what is not a whole save is reported', async () => {
    const { bytes, load } = await smallSession()
    const wholeSaves = new Set<number>()
    for (let at = bytes.indexOf('\n', bytes.indexOf('größer')); at !== -1; at = bytes.indexOf('\n', at + 1)) {
      wholeSaves.add(at).add(at + 1)
    }
    for (let length = 0; length <= bytes.length; length++) {
      const { messages, damage } = await load(`t${length}`, bytes.subarray(0, length))
      expect(messages, `cut at ${length}`).toEqual(MESSAGES.slice(0, messages?.length))
      expect(damage === undefined, `cut at ${length}`).toBe(wholeSaves.has(length))
    }
  })

  test('S8: a file full of NUL bytes is reported, copied aside, and not taken for an empty session', async () => {
    const { load } = await smallSession()
    const { messages, damage } = await load('a', Buffer.alloc(500))
    expect(messages).toEqual([])
    expect(damage?.copy).toBeDefined()
  })

  test('S8: an onDamage that throws does not raise into the read', async () => {
    const { directory, bytes, fileOf, store } = await smallSession()
    await store.close()
    const again = await openStore({
      directory,
      onDamage: () => {
        throw new Error('listener')
      },
    })
    await writeFile(fileOf('a'), bytes.subarray(0, bytes.length - 5))
    expect((await again.store.get('a'))?.messages).toHaveLength(4)
    expect(again.logger.lines.map(({ message }) => message)).toContain('onDamage failed')
  })

  test('S8: loading the same damage again makes no second copy', async () => {
    const { bytes, load, directory, reopen } = await smallSession()
    await load('a', bytes.subarray(0, bytes.length - 5))
    await (await reopen()).store.get('a')
    expect(await readdir(join(directory, 'damaged'))).toHaveLength(1)
  })

  test('S8: a damaged file that cannot be copied aside is still read, and never overwritten', async () => {
    const { store, bytes, load, directory, fileOf } = await smallSession()
    await writeFile(join(directory, 'damaged'), 'a file where the directory should be')
    const cut = bytes.subarray(0, bytes.length - 5)
    const { messages, damage } = await load('a', cut)
    expect(messages).toEqual(MESSAGES.slice(0, 4))
    expect(damage).toMatchObject({ copy: undefined })
    const session = (await store.get('a'))!
    await expect(store.save(session)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(await readFile(fileOf('a'))).toEqual(cut)
    await rm(join(directory, 'damaged'))
    await mkdir(join(directory, 'damaged'))
    await store.save(session)
    expect(await readdir(join(directory, 'damaged'))).toHaveLength(1)
  })

  test('S8: a session with fewer messages than its index entry says is reported', async () => {
    const { bytes, fileOf, reopen } = await smallSession()
    const lines = bytes.toString().trimEnd().split('\n')
    await writeFile(fileOf('whole'), lines.slice(0, -1).join('\n') + '\n')
    const again = await reopen()
    await again.store.get('whole')
    expect(again.logger.lines).toMatchObject([{ level: 'warn', fields: { listed: 5, found: 4 } }])
  })
})
