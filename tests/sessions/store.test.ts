import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openLogFile, type OpenLogFile } from '../../src/log/files.js'
import { encodeLine, serialiseFields } from '../../src/log/line.js'
import { SessionStore } from '../../src/sessions/index.js'
import { diskError, faultyFiles } from '../support/faulty-files.js'
import { temporaryDirectory } from '../support/temporary.js'
import { assistant, openJournaledStore, openStore, user } from './support.js'

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  )
const indexOf = (directory: string) => join(directory, 'index.jsonl')
const sizeOf = async (path: string) => (await stat(path)).size

/** Counts the files that were put in place whole. */
function countRewrites() {
  let count = 0
  const openFile: OpenLogFile = (path, flags) => {
    if (flags === 'wx') count += 1
    return openLogFile(path, flags)
  }
  return { openFile, rewrites: () => count }
}

describe('saving', () => {
  test('S1: save writes the session and its index entry', async () => {
    const { store, directory, fileOf, reopen } = await openStore()
    const session = await store.create({ id: 'a', title: 'First', messages: [user('hello')] })
    await store.save(session)
    expect(await exists(fileOf('a'))).toBe(true)
    expect(await exists(indexOf(directory))).toBe(true)
    const again = await reopen()
    expect(await again.store.list()).toEqual([
      { id: 'a', title: 'First', updatedAt: session.updatedAt, messageCount: 1 },
    ])
    expect(await again.store.get('a')).toEqual(session)
  })

  test('S1: create writes nothing before the first save', async () => {
    const { store, directory } = await openStore()
    await store.create({ id: 'a', messages: [user('hello')] })
    expect(await readdir(join(directory, 'sessions'))).toEqual([])
    expect(await exists(indexOf(directory))).toBe(false)
  })

  test('S1: save without the index neither creates nor touches it, and a later full save repairs it', async () => {
    const { store, directory } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.save(session, { index: false })
    expect(await exists(indexOf(directory))).toBe(false)
    await store.save(session)
    const before = await readFile(indexOf(directory))
    session.messages.push(user('more'))
    await store.save(session, { index: false })
    expect(await readFile(indexOf(directory))).toEqual(before)
    await store.save(session)
    expect(await store.list()).toMatchObject([{ id: 'a', messageCount: 1 }])
  })

  test('S1: save moves updatedAt, and touch: false keeps it', async () => {
    const { store, clock } = await openStore()
    const session = await store.create({ id: 'a' })
    clock.advance(1_000)
    session.messages.push(user('x'))
    await store.save(session, { touch: false })
    expect(session.updatedAt).toBe(session.createdAt)
    await store.save(session)
    expect(session.updatedAt).toBe(session.createdAt + 1_000)
  })

  test('S2: concurrent saves of one session do not disturb each other, and the last state is on disk', async () => {
    const { store, directory, reopen } = await openStore()
    const session = await store.create({ id: 'a' })
    const saves: Promise<void>[] = []
    for (let n = 0; n < 50; n++) {
      session.messages.push(user(String(n)))
      saves.push(store.save(session, { fsync: n % 10 === 0 }))
    }
    await Promise.all(saves)
    expect(await readdir(join(directory, 'sessions'))).toEqual(['a.jsonl'])
    expect((await (await reopen()).store.get('a'))?.messages).toEqual(session.messages)
  })

  test('S2: every prefix of what was written is an older state of the session, never a mixture', async () => {
    const { store, directory, fileOf } = await openStore()
    const session = await store.create({ id: 'a' })
    const states: unknown[] = []
    for (let n = 0; n < 4; n++) {
      session.messages.push(user(`q${n}`), assistant(`a${n}`))
      session.title = `title ${n}`
      await store.save(session)
      states.push([session.title, structuredClone(session.messages)])
    }
    await store.close()
    const bytes = await readFile(fileOf('a'))
    const first = bytes.indexOf('\n', bytes.indexOf('a0')) + 1
    for (let length = first; length <= bytes.length; length += 7) {
      await writeFile(fileOf('a'), bytes.subarray(0, length))
      const again = await SessionStore.open({ directory })
      const read = await again.get('a')
      await again.close()
      expect(states).toContainEqual([read?.title, read?.messages])
    }
  })

  test('S2: a save that fails leaves the old session, no temporary file, and the next save puts all in place', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('ENOSPC') : undefined))
    const { store, directory, reopen } = await openStore({ openFile })
    const session = await store.create({ id: 'a', messages: [user('one')] })
    await store.save(session)
    failing = true
    session.messages.push(user('two'))
    await expect(store.save(session)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(await readdir(join(directory, 'sessions'))).toEqual(['a.jsonl'])
    failing = false
    session.messages.push(user('three'))
    await store.save(session)
    const read = await (await reopen()).store.get('a')
    expect(read?.messages.map(({ content }) => content)).toEqual(['one', 'two', 'three'])
  })

  test('S2: temporary files that a crash left are swept at the next open', async () => {
    const { store, directory, reopen } = await openStore()
    await store.save(await store.create({ id: 'a' }))
    await writeFile(join(directory, 'sessions', '=tmp-left'), 'half')
    await writeFile(join(directory, '=tmp-left'), 'half')
    await reopen()
    expect(await readdir(join(directory, 'sessions'))).toEqual(['a.jsonl'])
    expect(await readdir(directory)).not.toContain('=tmp-left')
  })

  test('S3: save does not sync by default; with fsync it syncs the file before it resolves', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { store } = await openStore({ openFile })
    const session = await store.create({ id: 'a', messages: [user('one')] })
    await store.save(session)
    session.messages.push(user('two'))
    await store.save(session)
    expect(calls).not.toContain('datasync')
    await store.save(session, { fsync: true, touch: false })
    expect(calls.filter((call) => call === 'datasync')).toHaveLength(1)
  })

  test('S3: a session whose sync failed is written to a new file by the next save', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'datasync' && failing ? diskError('EIO') : undefined))
    const { store, reopen } = await openStore({ openFile })
    const session = await store.create({ id: 'a', messages: [user('one')] })
    await store.save(session, { fsync: true })
    failing = true
    session.messages.push(user('two'))
    await expect(store.save(session, { fsync: true })).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    failing = false
    await store.save(session, { fsync: true })
    expect((await (await reopen()).store.get('a'))?.messages).toHaveLength(2)
  })

  test('S4: flushAll saves every loaded session durably, and a fresh process finds it', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { store, reopen } = await openStore({ openFile })
    for (const id of ['a', 'b', 'c']) (await store.create({ id })).messages.push(user(id))
    expect(await store.flushAll()).toEqual({ flushed: 3, failed: [] })
    calls.length = 0
    expect(await store.flushAll()).toEqual({ flushed: 3, failed: [] })
    expect(calls).toEqual([])
    const again = await reopen()
    expect((await again.store.get('b'))?.messages).toEqual([user('b')])
    expect(await again.store.list()).toHaveLength(3)
  })

  test('S4: flushAll goes on past a session that fails, logs it and reports it', async () => {
    const { store, logger } = await openStore()
    const broken = await store.create({ id: 'broken' })
    broken.metadata['circular'] = broken.metadata
    await store.create({ id: 'fine' })
    const report = await store.flushAll()
    expect(report).toMatchObject({ flushed: 1, failed: [{ id: 'broken', error: expect.any(TypeError) as Error }] })
    expect(logger.lines).toContainEqual(
      expect.objectContaining({ level: 'error', fields: expect.objectContaining({ sessionId: 'broken' }) as object }),
    )
  })

  test('S5: completing a turn of a 2,000-message session writes about as many bytes as completing the first', async () => {
    const { store, fileOf } = await openStore()
    const turn = () => [user('What is the weather like?'), assistant('It rains, and it will go on raining.')]
    const small = await store.create({ id: 'small' })
    const large = await store.create({ id: 'large', messages: Array.from({ length: 1_000 }, turn).flat() })
    const written: number[] = []
    for (const session of [small, large]) {
      await store.save(session)
      const before = await sizeOf(fileOf(session.id))
      session.messages.push(...turn())
      await store.save(session)
      written.push((await sizeOf(fileOf(session.id))) - before)
    }
    expect(written[1]).toBeLessThan(written[0]! * 1.2)
  })

  test.each(['Die Bäckerei öffnet früh.', 'Сегодня идёт дождь.', '今日は雨が降っています。', '🌧️🌧️🌧️'])(
    'S5: appending rewrites nothing, whatever the script: %s',
    async (text) => {
      const { openFile, rewrites } = countRewrites()
      const { store } = await openStore({ openFile })
      const session = await store.create({ id: 'a', messages: Array.from({ length: 500 }, () => user(text.repeat(5))) })
      await store.save(session)
      const before = rewrites()
      for (let n = 0; n < 20; n++) {
        session.messages.push(assistant(text))
        await store.save(session, { index: false })
      }
      expect(rewrites()).toBe(before)
    },
  )

  test('S5: completing the 400th turn costs about what completing the first did, also with a journal', async () => {
    const { store, fileOf } = await openJournaledStore()
    await store.create({ id: 'a' })
    const lengths: number[] = []
    for (let n = 0; n < 400; n++) {
      await store.beginTurn('a', { text: 'How is the weather?', runId: `run-${n}` })
      await store.endTurn('a', `run-${n}`, [{ role: 'assistant', content: 'It rains.' }])
      const lines = (await readFile(fileOf('a'), 'utf8')).split('\n')
      lengths.push(Math.max(...lines.map((line) => line.length)))
    }
    expect(Math.max(...lengths)).toBeLessThan(lengths[0]! + 1_000)
  })

  test('S5: the file is rewritten when it carries more dead bytes than live ones', async () => {
    const { store, fileOf, reopen } = await openStore()
    const session = await store.create({ id: 'a', messages: [user('x'.repeat(2_000))] })
    await store.save(session)
    for (let n = 0; n < 100; n++) {
      session.messages[0] = user(String(n).padEnd(2_000, 'x'))
      await store.save(session)
      expect(await sizeOf(fileOf('a'))).toBeLessThan(25_000)
    }
    expect((await (await reopen()).store.get('a'))?.messages).toEqual(session.messages)
  })

  test('S5: a message or tool call edited in place is saved', async () => {
    const { store, reopen } = await openStore()
    const session = await store.create({ id: 'a', messages: Array.from({ length: 100 }, (_, n) => user(String(n))) })
    session.toolCalls = [{ name: 'search', messageIndex: 98, done: false }]
    await store.save(session)
    session.messages[95]!.attachments = [{ name: 'x' }]
    await store.save(session)
    session.messages[95]!.attachments[0] = { name: 'y' }
    session.messages[90]!.content = 'edited'
    delete session.messages[99]!.attachments
    session.messages[99]!.partial = true
    session.toolCalls[0]!.done = true
    await store.save(session)
    const read = await (await reopen()).store.get('a')
    expect(read?.messages).toEqual(session.messages)
    expect(read?.toolCalls).toEqual([{ name: 'search', messageIndex: 98, done: true }])
    expect(read?.messages[90]?.content).toBe('edited')
    expect(read?.messages[95]?.attachments).toEqual([{ name: 'y' }])
  })

  test('S5: an old message of a long session is frozen, so no edit is lost silently; it can be replaced', async () => {
    const { store, reopen } = await openStore()
    const session = await store.create({ id: 'a', messages: Array.from({ length: 100 }, (_, n) => user(String(n))) })
    await store.save(session)
    expect(() => (session.messages[3]!.content = 'edited')).toThrow(TypeError)
    session.messages[3] = user('replaced')
    await store.save(session)
    const again = await reopen()
    const read = (await again.store.get('a'))!
    expect(read.messages).toEqual(session.messages)
    expect(() => (read.messages[5]!.content = 'edited')).toThrow(TypeError)
  })

  test('S5: bytes in an attachment, which cannot be frozen, do not keep their message or later ones from the file', async () => {
    const { store, reopen } = await openStore()
    const image = { ...user('look'), attachments: [{ name: 'x.png', bytes: new Uint8Array([1, 2]) }] }
    const session = await store.create({ id: 'a', messages: [image] })
    await store.save(session)
    for (let n = 0; n < 50; n++) {
      session.messages.push(user(String(n)))
      await store.save(session)
    }
    const read = (await (await reopen()).store.get('a'))!
    expect(read.messages).toHaveLength(51)
    expect(read.messages[0]?.attachments).toEqual([{ name: 'x.png', bytes: { 0: 1, 1: 2 } }])
  })

  test('S6: saving fewer messages than are on disk is an error that names both counts', async () => {
    const { store, reopen } = await openStore()
    const session = await store.create({ id: 'a', messages: [user('1'), user('2'), user('3')] })
    await store.save(session)
    session.messages.length = 1
    await expect(store.save(session)).rejects.toMatchObject({
      code: 'SESSION_SHRUNK',
      message: expect.stringMatching(/1 messages.*3 are saved/) as string,
    })
    await store.save(session, { truncate: true })
    expect((await (await reopen()).store.get('a'))?.messages).toEqual([user('1')])
  })

  test('S6: a message that is none is refused before anything is written', async () => {
    const { store } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.save(session)
    const { updatedAt } = session
    session.messages.push({ role: 'robot', content: 'x', timestamp: 1 } as never)
    await expect(store.save(session)).rejects.toThrow(TypeError)
    expect(session.updatedAt).toBe(updatedAt)
  })

  test.each(['../x', '', '.', '..', 'a/b', 'ä'])('S7: the id %j is refused everywhere', async (id) => {
    const { store } = await openStore()
    for (const call of [
      () => store.get(id),
      () => store.getOrCreate(id),
      () => store.create({ id }),
      () => store.delete(id),
      () => store.update(id, () => undefined),
      () => store.beginTurn(id, { text: 'x' }),
      () => store.rotate('a', id),
      async () => store.lock(id),
    ]) {
      await expect(call()).rejects.toThrow(TypeError)
    }
  })

  test('S7: ids that differ only in case are different sessions', async () => {
    const { store, directory, reopen } = await openStore()
    for (const id of ['alice', 'Alice', 'con', 'a:b']) await store.save(await store.create({ id, title: id }))
    const names = (await readdir(join(directory, 'sessions'))).map((name) => name.toLowerCase())
    expect(new Set(names).size).toBe(4)
    const again = await reopen()
    for (const id of ['alice', 'Alice', 'con', 'a:b']) expect((await again.store.get(id))?.title).toBe(id)
  })

  test('S10: there is one live object a session', async () => {
    const { store, reopen } = await openStore()
    const session = await store.create({ id: 'a' })
    expect(await store.get('a')).toBe(session)
    expect(await store.getOrCreate('a')).toBe(session)
    await store.save(session)
    const again = await reopen()
    const [one, two] = await Promise.all([again.store.get('a'), again.store.getOrCreate('a')])
    expect(one).toBe(two)
    expect(await again.store.get('unknown')).toBeUndefined()
    const [three, four] = await Promise.all([again.store.getOrCreate('new'), again.store.getOrCreate('new')])
    expect(three).toBe(four)
  })

  test('S10: saving any other object is refused as stale', async () => {
    const { store } = await openStore()
    const session = await store.create({ id: 'a' })
    await expect(store.save({ ...session })).rejects.toMatchObject({ code: 'SESSION_STALE' })
    await store.save(session)
    await store.delete('a')
    await expect(store.save(session)).rejects.toMatchObject({ code: 'SESSION_STALE' })
  })

  test('S10: creating a session that exists is refused, in memory and on disk', async () => {
    const { store, reopen } = await openStore()
    await store.save(await store.create({ id: 'a' }))
    await expect(store.create({ id: 'a' })).rejects.toMatchObject({ code: 'SESSION_EXISTS' })
    await expect((await reopen()).store.create({ id: 'a' })).rejects.toMatchObject({ code: 'SESSION_EXISTS' })
  })

  test('S11: save takes no lock, so it works inside update and runExclusive', async () => {
    const { store } = await openStore()
    await store.create({ id: 'a' })
    await store.update('a', async (session) => {
      session.messages.push(user('x'))
      await store.save(session)
    })
    await store.lock('a').runExclusive(async () => store.save((await store.get('a'))!))
    expect((await store.list())[0]?.messageCount).toBe(1)
  })
})

describe('the index', () => {
  test.each(['missing', 'damaged', 'empty'])('S8: an index that is %s is rebuilt from the files', async (kind) => {
    const { store, directory, reopen } = await openStore()
    for (const id of ['a', 'b']) await store.save(await store.create({ id, title: `title ${id}` }))
    const before = await store.list()
    await store.close()
    if (kind === 'missing') await rm(indexOf(directory))
    else
      await writeFile(
        indexOf(directory),
        kind === 'empty' ? '' : (await readFile(indexOf(directory), 'utf8')).replace('title b', 'title c'),
      )
    const again = await reopen()
    expect(new Set(await again.store.list())).toEqual(new Set(before))
    await again.store.save((await again.store.get('a'))!)
    const third = await again.reopen()
    expect(await third.store.list()).toHaveLength(2)
  })

  test('S8: one session that cannot be read does not hide the others', async () => {
    const { store, directory, fileOf, reopen } = await openStore()
    for (const id of ['a', 'b']) await store.save(await store.create({ id, messages: [user(id)] }))
    await store.close()
    await rm(indexOf(directory))
    await writeFile(fileOf('a'), 'rubbish')
    await mkdir(fileOf('c'))
    const again = await reopen()
    const listed = await again.store.list()
    expect(listed.map(({ id }) => id).sort()).toEqual(['a', 'b'])
  })

  test('a session that was deleted is gone from disk and index', async () => {
    const { store, directory, reopen } = await openStore()
    for (const id of ['a', 'b']) await store.save(await store.create({ id }))
    expect(await store.delete('a')).toBe(true)
    expect(await store.delete('a')).toBe(false)
    expect(await readdir(join(directory, 'sessions'))).toEqual(['b.jsonl'])
    const again = await reopen()
    expect((await again.store.list()).map(({ id }) => id)).toEqual(['b'])
    expect(await again.store.get('a')).toBeUndefined()
  })

  test('the index stays small however often sessions are saved', async () => {
    const { store, directory } = await openStore()
    const session = await store.create({ id: 'a' })
    for (let n = 0; n < 1_000; n++) {
      session.title = `${'long '.repeat(500)}title ${n}`
      await store.save(session)
    }
    expect(await sizeOf(indexOf(directory))).toBeLessThan(1_100_000)
    expect((await store.list())[0]?.title).toMatch(/title 999$/)
  })

  test('S5: long titles do not make every save rewrite the index', async () => {
    const { openFile, rewrites } = countRewrites()
    const { store, reopen, directory } = await openStore({ openFile })
    const sessions = await Promise.all(
      Array.from({ length: 300 }, (_, n) => store.create({ id: `s${n}`, title: '長い題'.repeat(200) })),
    )
    for (const session of sessions) await store.save(session)
    const before = rewrites()
    for (const session of sessions.slice(0, 50)) await store.save(session)
    expect(rewrites()).toBe(before)
    const again = await reopen()
    const session = (await again.store.get('s0'))!
    for (let n = 0; n < 50; n++) await again.store.save(session)
    expect(rewrites()).toBe(before)
    for (let n = 0; n < 700; n++) await again.store.save(session)
    expect(rewrites()).toBeGreaterThan(before)
    expect(await sizeOf(indexOf(directory))).toBeLessThan(300 * 2_000 * 2.1)
  })

  test('S8: a session that cannot be read for a moment is listed when it can be', async () => {
    const { store, directory, fileOf, reopen } = await openStore()
    await store.save(await store.create({ id: 'a', messages: [user('a')] }))
    await store.close()
    await rm(indexOf(directory))
    await rename(fileOf('a'), join(directory, 'elsewhere'))
    await mkdir(fileOf('a'))
    const again = await reopen()
    expect(await again.store.list()).toEqual([])
    await rm(fileOf('a'), { recursive: true })
    await rename(join(directory, 'elsewhere'), fileOf('a'))
    expect(await again.store.list()).toMatchObject([{ id: 'a', messageCount: 1 }])
  })

  test('a session or index of a newer version is refused with a clear message', async () => {
    const { store, directory, fileOf } = await openStore()
    await writeFile(fileOf('a'), encodeLine(0, serialiseFields({ format: 'tidemark-session', version: 2 })))
    await expect(store.get('a')).rejects.toMatchObject({ code: 'FILE_NEWER' })
    await store.close()
    await writeFile(
      indexOf(directory),
      encodeLine(0, serialiseFields({ format: 'tidemark-session-index', version: 2 })),
    )
    await expect(SessionStore.open({ directory })).rejects.toMatchObject({ code: 'FILE_NEWER' })
    await rm(indexOf(directory))
    await (await SessionStore.open({ directory })).close()
  })
})

describe('the cache of loaded sessions', () => {
  test('is bounded, and what left it is read again', async () => {
    const { store } = await openStore({ maxLoaded: 3 })
    const first = await store.create({ id: 's0', messages: [user('kept')] })
    await store.save(first)
    for (let n = 1; n < 10; n++) await store.save(await store.create({ id: `s${n}` }))
    const again = await store.get('s0')
    expect(again).not.toBe(first)
    expect(again?.messages).toEqual([user('kept')])
    await expect(store.save(first)).rejects.toMatchObject({ code: 'SESSION_STALE' })
  })

  test('never gives up a session with unsaved or running work', async () => {
    const { store } = await openStore({ maxLoaded: 1 })
    const unsaved = await store.create({ id: 'unsaved' })
    const running = await store.create({ id: 'running' })
    await store.beginTurn('running', { text: 'go', runId: 'r' })
    const changed = await store.create({ id: 'changed' })
    await store.save(changed)
    changed.title = 'not saved yet'
    for (let n = 0; n < 20; n++) await store.save(await store.create({ id: `s${n}` }))
    expect(await store.get('unsaved')).toBe(unsaved)
    expect(await store.get('running')).toBe(running)
    expect(await store.get('changed')).toBe(changed)
  })
})

describe('a neighbour in trouble', () => {
  test('S10: a session that was just read is the live one, also when all others are busy', async () => {
    const { store } = await openStore({ maxLoaded: 1 })
    await store.save(await store.create({ id: 'a' }))
    await store.create({ id: 'unsaved' })
    const session = (await store.get('a'))!
    session.messages.push(user('x'))
    await store.save(session)
    expect(await store.get('a')).toBe(session)
  })

  test('a session that cannot be serialised does not keep others from being read', async () => {
    const { store } = await openStore({ maxLoaded: 1 })
    const broken = await store.create({ id: 'broken' })
    await store.save(broken)
    broken.metadata['circular'] = broken.metadata
    for (const id of ['a', 'b', 'c']) await store.save(await store.create({ id }))
    expect(await store.get('a')).toMatchObject({ id: 'a' })
    expect(await store.get('broken')).toBe(broken)
  })
})

describe('opening', () => {
  test('files are for this user only', async () => {
    const { store, directory, fileOf } = await openStore()
    await store.save(await store.create({ id: 'a' }))
    expect((await stat(fileOf('a'))).mode & 0o777).toBe(0o600)
    expect((await stat(join(directory, 'sessions'))).mode & 0o777).toBe(0o700)
    await chmod(directory, 0o700)
  })

  test('S9: a second store on the same directory is refused and told who holds it; after close it is free', async () => {
    const { store, directory } = await openStore()
    await expect(SessionStore.open({ directory })).rejects.toMatchObject({
      code: 'LOCKED',
      message: expect.stringContaining(`process ${process.pid}`) as string,
    })
    await store.save(await store.create({ id: 'still-mine' }))
    await store.close()
    await (await SessionStore.open({ directory })).close()
  })

  test('S9: a lock that is no lock any more is named, with what to do', async () => {
    const directory = await temporaryDirectory()
    await writeFile(join(directory, 'lock.sqlite'), Buffer.alloc(4_096))
    await expect(SessionStore.open({ directory })).rejects.toMatchObject({
      code: 'CORRUPT',
      message: expect.stringContaining(join(directory, 'lock.sqlite')) as string,
    })
  })

  test('S9: what was begun before close writes nothing after it: another process may have the directory by then', async () => {
    const { store, directory, fileOf, reopen } = await openStore()
    const ids = Array.from({ length: 20 }, (_, n) => `s${n}`)
    for (const id of ids) await store.save(await store.create({ id }))
    const second = await reopen()
    const changing = ids.map((id) => second.store.update(id, (session) => void session.messages.push(user('late'))))
    const settled = Promise.allSettled(changing)
    await second.store.close()
    const read = () => Promise.all([...ids.map(fileOf), indexOf(directory)].map((path) => readFile(path, 'utf8')))
    const whenFree = await read()
    const outcomes = await settled
    expect(await read()).toEqual(whenFree)
    outcomes.forEach((outcome, n) => expect(whenFree[n]?.includes('late')).toBe(outcome.status === 'fulfilled'))
  })

  test('a closed store says so, and closing twice is fine', async () => {
    const { store } = await openStore()
    await store.close()
    await store.close()
    await expect(store.get('a')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test.each([{ maxLoaded: 0 }, { recovery: { graceMs: -1 } }, { directory: '' }])(
    'nonsense is refused: %j',
    async (options) => {
      await expect(SessionStore.open({ directory: await temporaryDirectory(), ...options })).rejects.toThrow(TypeError)
    },
  )
})
