import { readFile, stat } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { JournalPort } from '../../src/sessions/index.js'
import { diskError, faultyFiles } from '../support/faulty-files.js'
import { gate, turnsOfTheLoop, until } from '../support/gate.js'
import { assistant, openJournaledStore, openStore, user } from './support.js'

const contents = (session: { messages: { content: string }[] } | undefined) =>
  session?.messages.map(({ content }) => content)

describe('undo and retry', () => {
  async function storeWithTwoTurns() {
    const opened = await openStore()
    const session = await opened.store.create({
      id: 'a',
      messages: [user('q1'), assistant('a1'), user('q2'), assistant('a2'), assistant('a2b')],
    })
    session.toolCalls = [
      { name: 'early', messageIndex: 1, done: true },
      { name: 'late', messageIndex: 3, done: true },
    ]
    await opened.store.save(session)
    return { ...opened, session }
  }

  test('K3: undoLast removes the last user message, all after it and the tool calls that point there', async () => {
    const { store, reopen } = await storeWithTwoTurns()
    await store.undoLast('a')
    const read = await (await reopen()).store.get('a')
    expect(contents(read)).toEqual(['q1', 'a1'])
    expect(read?.toolCalls.map(({ name }) => name)).toEqual(['early'])
  })

  test('K3: retryLast does the same and gives the removed text', async () => {
    const { store, session } = await storeWithTwoTurns()
    expect(await store.retryLast('a')).toEqual({ text: 'q2' })
    expect(contents(session)).toEqual(['q1', 'a1'])
  })

  test('K3: both wait for the lock', async () => {
    const { store, session } = await storeWithTwoTurns()
    const door = gate()
    const holder = store.lock('a').runExclusive(() => door.passed)
    const undo = store.undoLast('a')
    await turnsOfTheLoop()
    expect(session.messages).toHaveLength(5)
    door.open()
    await Promise.all([holder, undo])
    expect(session.messages).toHaveLength(2)
  })

  test('K3: without a user message they fail clearly and change nothing', async () => {
    const { store } = await openStore()
    const session = await store.create({ id: 'a', messages: [assistant('hi')] })
    await expect(store.undoLast('a')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('no user message') as string,
    })
    await expect(store.retryLast('a')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(store.undoLast('unknown')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(session.messages).toHaveLength(1)
  })

  test('K3: an undo that cannot be saved is taken back in memory', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('ENOSPC') : undefined))
    const { store } = await openStore({ openFile })
    const session = await store.create({ id: 'a', messages: [user('q1'), assistant('a1')] })
    session.toolCalls.push({ name: 't', messageIndex: 1, done: true })
    await store.save(session)
    failing = true
    await expect(store.undoLast('a')).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(contents(session)).toEqual(['q1', 'a1'])
    expect(session.toolCalls).toHaveLength(1)
  })
})

describe('beginning a turn', () => {
  test("T1: the user's words are on disk before the model is called", async () => {
    const { store, clock, reopen } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'my words', runId: 'r1', attachments: [{ name: 'x.png' }] })
    const read = await (await reopen()).store.get('a')
    expect(read).toMatchObject({
      pendingUserMessage: 'my words',
      pendingStartedAt: clock.now(),
      pendingAttachments: [{ name: 'x.png' }],
      activeRunId: 'r1',
      messages: [],
    })
  })

  test('T1: a pending turn that is alive is an error, and changes nothing', async () => {
    const { store } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    await expect(store.beginTurn('a', { text: 'two', runId: 'r2' })).rejects.toMatchObject({ code: 'RUN_ALIVE' })
    expect(session).toMatchObject({ pendingUserMessage: 'one', activeRunId: 'r1' })
    expect(await store.endTurn('a', 'r1', [assistant('done')])).toMatchObject({ status: 'ended' })
  })

  test('T1: so is one that isRunAlive knows', async () => {
    const { store, reopen } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    const again = await reopen({ isRunAlive: (sessionId, runId) => sessionId === 'a' && runId === 'r1' })
    await expect(again.store.beginTurn('a', { text: 'two' })).rejects.toMatchObject({ code: 'RUN_ALIVE' })
  })

  test('T1: a refused begin takes nothing back that the run put there meanwhile', async () => {
    const asked = gate()
    const { store, reopen } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    const again = await reopen({ isRunAlive: () => asked.passed.then(() => true) })
    const session = await again.store.getOrCreate('a')
    const begin = again.store.beginTurn('a', { text: 'two' })
    await turnsOfTheLoop()
    session.messages.push(assistant('a step'))
    asked.open()
    await expect(begin).rejects.toMatchObject({ code: 'RUN_ALIVE' })
    expect(contents(session)).toEqual(['a step'])
  })

  test('T1: a pending turn that is not alive is recovered first, whatever its age', async () => {
    const { store, journal, reopen } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    await journal.append('a', 'r1', 'token', { text: 'half an ans' })
    const again = await reopen()
    await again.store.beginTurn('a', { text: 'two', runId: 'r2' })
    const session = (await again.store.get('a'))!
    expect(session.messages).toMatchObject([
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'half an ans', partial: true },
      { interruption: { state: 'recovered' } },
    ])
    expect(session).toMatchObject({ pendingUserMessage: 'two', activeRunId: 'r2' })
  })

  test('T1: a refused begin leaves the run that works alive, also under the same run id', async () => {
    const { store, clock } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    await expect(store.beginTurn('a', { text: 'two', runId: 'r1' })).rejects.toMatchObject({ code: 'RUN_ALIVE' })
    clock.advance(3_600_000)
    await store.get('a')
    expect(session).toMatchObject({ activeRunId: 'r1', pendingUserMessage: 'one', messages: [] })
  })

  test('T1: two sessions may use the same run id', async () => {
    const { store } = await openStore()
    const [a, b] = [await store.create({ id: 'a' }), await store.create({ id: 'b' })]
    await store.beginTurn('a', { text: 'of a', runId: 'r' })
    await store.beginTurn('b', { text: 'of b', runId: 'r' })
    expect(await store.endTurn('a', 'r', [assistant('to a')])).toEqual({ status: 'ended', sessionId: 'a' })
    await expect(store.beginTurn('b', { text: 'x' })).rejects.toMatchObject({ code: 'RUN_ALIVE' })
    expect(await store.endTurn('b', 'r', [assistant('to b')])).toEqual({ status: 'ended', sessionId: 'b' })
    expect([contents(a), contents(b)]).toEqual([
      ['of a', 'to a'],
      ['of b', 'to b'],
    ])
  })

  test('T1: a begin that cannot be saved leaves no pending turn', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('ENOSPC') : undefined))
    const { store } = await openStore({ openFile })
    const session = await store.create({ id: 'a' })
    await store.save(session)
    failing = true
    await expect(store.beginTurn('a', { text: 'x', runId: 'r1' })).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(session).toMatchObject({ pendingUserMessage: null, activeRunId: null })
    failing = false
    await store.beginTurn('a', { text: 'x', runId: 'r1' })
  })

  test('a turn of an unknown session or with bad arguments is refused', async () => {
    const { store } = await openStore()
    await expect(store.beginTurn('unknown', { text: 'x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await store.create({ id: 'a' })
    await expect(store.beginTurn('a', { text: 7 as never })).rejects.toThrow(TypeError)
    await expect(store.beginTurn('a', { text: 'x', runId: '../r' })).rejects.toThrow(TypeError)
  })
})

describe('ending a turn', () => {
  test("T4: puts the user's message and the answer into the transcript, clears the bookkeeping, journals done", async () => {
    const { store, journal, clock, reopen } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'question', runId: 'r1', attachments: ['file'] })
    const startedAt = clock.now()
    clock.advance(5_000)
    const outcome = await store.endTurn('a', 'r1', [{ role: 'assistant', content: 'answer' }], {
      toolCalls: [{ name: 'search', messageIndex: 0, done: true }],
    })
    expect(outcome).toEqual({ status: 'ended', sessionId: 'a' })
    expect((await journal.summary('a', 'r1')).state).toBe('completed')
    const read = (await (await reopen()).store.get('a'))!
    expect(read.messages).toEqual([
      { role: 'user', content: 'question', timestamp: startedAt, attachments: ['file'] },
      { role: 'assistant', content: 'answer', timestamp: startedAt + 5_000 },
    ])
    expect(read.toolCalls).toEqual([{ name: 'search', messageIndex: 1, done: true }])
    expect(read).toMatchObject({
      pendingUserMessage: null,
      pendingAttachments: [],
      pendingStartedAt: null,
      activeRunId: null,
    })
  })

  test("T4: the user's message is there once, also if the host put it there or hands it over again", async () => {
    const { store, clock } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await store.update('a', ({ messages }) => void messages.push(user('q', clock.now())))
    await store.endTurn('a', 'r1', [assistant('a')])
    await store.beginTurn('a', { text: 'q', runId: 'r2' })
    clock.advance(1)
    await store.endTurn('a', 'r2', [user('q', clock.now()), assistant('a')])
    expect(contents(session)).toEqual(['q', 'a', 'q', 'a'])
  })

  test('T4: if the session has moved on it changes nothing and says so', async () => {
    const { store } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'one', runId: 'r1' })
    await store.cancelRun('a', 'r1')
    expect(await store.endTurn('a', 'r1', [assistant('late')])).toEqual({ status: 'moved', activeRunId: null })
    await store.beginTurn('a', { text: 'two', runId: 'r2' })
    expect(await store.endTurn('a', 'r1', [assistant('late')])).toEqual({ status: 'moved', activeRunId: 'r2' })
    expect(contents(session)).toEqual(['one'])
    expect(session.activeRunId).toBe('r2')
  })

  test('T4: an end that cannot be saved can be tried again', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('ENOSPC') : undefined))
    const { store } = await openStore({ openFile })
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    failing = true
    await expect(store.endTurn('a', 'r1', [assistant('a')])).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(session).toMatchObject({ messages: [], activeRunId: 'r1', pendingUserMessage: 'q' })
    failing = false
    expect(await store.endTurn('a', 'r1', [assistant('a')])).toMatchObject({ status: 'ended' })
    expect(contents(session)).toEqual(['q', 'a'])
  })

  test('T4: a journal that fails does not undo a saved turn', async () => {
    const failing = { append: () => Promise.reject(new Error('journal gone')) } as unknown as JournalPort
    const { store, logger } = await openStore({ journal: failing })
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    expect(await store.endTurn('a', 'r1', [assistant('a')])).toMatchObject({ status: 'ended' })
    expect(logger.lines.map(({ message }) => message)).toContain('the end of a run could not be journaled')
  })
})

describe('cancelling a run', () => {
  test("K4: clears the bookkeeping in one save and keeps the user's message and the partial output", async () => {
    const { store, journal, clock, fileOf, reopen } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1', attachments: ['file'] })
    const startedAt = clock.now()
    await journal.append('a', 'r1', 'token', { text: 'Let me ' })
    await journal.append('a', 'r1', 'token', { text: 'look.' })
    await journal.append('a', 'r1', 'tool', { name: 'search', preview: 'weather' })
    const linesBefore = (await readFile(fileOf('a'), 'utf8')).split('\n').length
    expect(await store.cancelRun('a', 'r1')).toEqual({ status: 'cancelled', sessionId: 'a' })
    expect((await readFile(fileOf('a'), 'utf8')).split('\n').length).toBe(linesBefore + 1)
    expect((await journal.summary('a', 'r1')).state).toBe('interrupted-by-user')
    const read = (await (await reopen()).store.get('a'))!
    expect(read.messages).toMatchObject([
      { role: 'user', content: 'q', timestamp: startedAt, attachments: ['file'] },
      { role: 'assistant', content: 'Let me look.', partial: true },
    ])
    expect(read.messages).toHaveLength(2)
    expect(read.toolCalls).toEqual([{ name: 'search', preview: 'weather', messageIndex: 1, done: false }])
    expect(read).toMatchObject({
      pendingUserMessage: null,
      pendingAttachments: [],
      pendingStartedAt: null,
      activeRunId: null,
    })
  })

  test('K4: touches nothing if the session has moved on to another run', async () => {
    const { store, fileOf } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await store.endTurn('a', 'r1', [assistant('a')])
    await store.beginTurn('a', { text: 'q2', runId: 'r2' })
    const before = await readFile(fileOf('a'))
    expect(await store.cancelRun('a', 'r1')).toEqual({ status: 'moved', activeRunId: 'r2' })
    expect(await readFile(fileOf('a'))).toEqual(before)
  })

  test('K4: what a checkpoint had saved of the answer is not there twice', async () => {
    const { store, journal, clock } = await openJournaledStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await journal.append('a', 'r1', 'token', { text: 'Hello world' })
    await store.update('a', ({ messages }) => void messages.push(user('q', clock.now()), assistant('Hello')))
    await store.cancelRun('a', 'r1')
    expect(contents(session)).toEqual(['q', 'Hello world'])
  })

  test('K4: steps of an answer that begin with the same words stay apart', async () => {
    const { store, journal, clock } = await openJournaledStore()
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    const steps = ['Let me look', 'Let me look at the other file', 'Let me']
    for (const text of steps) {
      await journal.append('a', 'r1', 'token', { text })
      await journal.append('a', 'r1', 'tool', { name: 'read' })
    }
    await store.update('a', ({ messages }) => {
      messages.push(user('q', clock.now()), ...steps.slice(0, 2).map((text) => assistant(text)))
    })
    await store.cancelRun('a', 'r1')
    expect(contents(session)).toEqual(['q', ...steps])
    expect(session.toolCalls.map(({ messageIndex }) => messageIndex)).toEqual([1, 2, 3])
  })
})

describe('checkpoints', () => {
  test('T2: activity makes a checkpoint, without the index; no activity, no write', async () => {
    const { store, clock, directory, fileOf } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.save(session)
    const index = await readFile(`${directory}/index.jsonl`)
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    session.messages.push(assistant('step'))
    const before = (await stat(fileOf('a'))).size
    clock.advance(10_000)
    expect(clock.timers).toBe(0)
    checkpoint.activity()
    checkpoint.activity()
    clock.advance(1_000)
    await until(() => session.updatedAt === clock.now(), 'the checkpoint to start')
    await checkpoint.stop()
    expect((await stat(fileOf('a'))).size).toBeGreaterThan(before)
    expect(session.updatedAt).toBe(clock.now())
    expect(await readFile(`${directory}/index.jsonl`)).toEqual(index)
  })

  test('T2: a checkpoint waits for the lock', async () => {
    const { store, clock } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.save(session)
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    const { updatedAt } = session
    const door = gate()
    const holder = store.lock('a').runExclusive(() => door.passed)
    checkpoint.activity()
    clock.advance(1_000)
    await turnsOfTheLoop()
    expect(session.updatedAt).toBe(updatedAt)
    door.open()
    await holder
    await until(() => session.updatedAt > updatedAt, 'the checkpoint')
    await checkpoint.stop()
  })

  test('T2: a checkpoint armed inside a long section is no re-entrance', async () => {
    const { store, clock, logger } = await openStore()
    const session = await store.create({ id: 'a' })
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    await store.lock('a').runExclusive(async () => {
      checkpoint.activity()
      clock.advance(1_000)
      await turnsOfTheLoop()
    })
    await until(() => session.updatedAt === clock.now(), 'the checkpoint')
    await checkpoint.stop()
    expect(logger.lines).toEqual([])
  })

  test('T3: stop waits for a write in progress, and after it nothing is written', async () => {
    const door = gate()
    let writes = 0
    let started = false
    const { openFile } = faultyFiles((call) => {
      if (call === 'write') writes += 1
      return undefined
    })
    const { store, clock } = await openStore({
      openFile: async (path, flags) => {
        const file = await openFile(path, flags)
        return {
          ...file,
          write: async (...args: Parameters<typeof file.write>) => {
            started = true
            await door.passed
            return file.write(...args)
          },
        }
      },
    })
    await store.create({ id: 'a', messages: [user('x')] })
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    checkpoint.activity()
    clock.advance(1_000)
    let stopped = false
    await until(() => started, 'the write to start')
    const stopping = checkpoint.stop().then(() => (stopped = true))
    await new Promise((resolve) => setImmediate(resolve))
    expect(stopped).toBe(false)
    door.open()
    await stopping
    expect(writes).toBe(1)
    checkpoint.activity()
    clock.advance(60_000)
    expect(clock.timers).toBe(0)
    expect(writes).toBe(1)
  })

  test('T3: stop is safe before the first write, twice, and for an unknown session', async () => {
    const { store, clock, logger } = await openStore()
    await store.create({ id: 'a' })
    const checkpoint = store.checkpoint('a')
    await checkpoint.stop()
    await checkpoint.stop()
    const lost = store.checkpoint('unknown', { everyMs: 1 })
    lost.activity()
    clock.advance(1)
    await until(() => logger.lines.length > 0, 'the failure to be logged')
    expect(logger.lines[0]?.message).toBe('a checkpoint failed; the run goes on')
    await lost.stop()
  })

  test('T3: a checkpoint that was still waiting for the lock when it was stopped writes nothing', async () => {
    const { store, clock, fileOf } = await openStore()
    const session = await store.create({ id: 'a' })
    await store.save(session)
    const before = await readFile(fileOf('a'))
    const checkpoint = store.checkpoint('a', { everyMs: 1 })
    await store.lock('a').runExclusive(async () => {
      checkpoint.activity()
      clock.advance(1)
      await turnsOfTheLoop()
      // Inside the lock that it waits for: this must not wait for it in turn.
      await checkpoint.stop()
    })
    session.title = 'newer'
    await turnsOfTheLoop()
    expect(await readFile(fileOf('a'))).toEqual(before)
  })

  test('T3: a checkpoint that fails is logged, the run goes on, and the next one saves', async () => {
    let failing = true
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('EIO') : undefined))
    const { store, clock, logger, fileOf } = await openStore({ openFile })
    await store.create({ id: 'a', messages: [user('x')] })
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    checkpoint.activity()
    clock.advance(1_000)
    await until(() => logger.lines.length > 0 && clock.timers > 0, 'the failure to be logged')
    failing = false
    clock.advance(1_000)
    await until(() => clock.timers === 0, 'the checkpoint')
    await checkpoint.stop()
    expect((await readFile(fileOf('a'), 'utf8')).includes('"x"')).toBe(true)
  })

  test('T4: the end of a turn stops the checkpointer', async () => {
    const { store, clock } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    const checkpoint = store.checkpoint('a', { everyMs: 1_000 })
    checkpoint.activity()
    await store.endTurn('a', 'r1', [assistant('a')])
    expect(clock.timers).toBe(0)
    checkpoint.activity()
    expect(clock.timers).toBe(0)
  })
})

describe('rotation', () => {
  test('K5: the old id keeps a snapshot, the new one has the live session, linked to it', async () => {
    const { store, journal, reopen } = await openJournaledStore()
    const session = await store.create({ id: 'old', messages: [user('q'), assistant('a')] })
    await store.beginTurn('old', { text: 'q2', runId: 'r1' })
    await journal.append('old', 'r1', 'token', { text: 'be' })
    const rotated = await store.rotate('old', 'new')
    expect(rotated).toBe(session)
    expect(await store.get('new')).toBe(session)
    expect(session).toMatchObject({
      id: 'new',
      rotatedFrom: 'old',
      rotatedTo: null,
      activeRunId: 'r1',
      pendingUserMessage: 'q2',
    })
    const snapshot = (await store.get('old'))!
    expect(snapshot).not.toBe(session)
    expect(snapshot).toMatchObject({
      id: 'old',
      rotatedTo: 'new',
      activeRunId: null,
      pendingUserMessage: null,
      messages: [user('q'), assistant('a')],
    })
    await journal.append('old', 'r1', 'token', { text: 'fore' })
    expect((await journal.summary('new', 'r1')).lastSeq).toBe(2)
    expect(await store.endTurn('old', 'r1', [assistant('a2')])).toEqual({ status: 'ended', sessionId: 'new' })
    const again = await reopen()
    expect(contents(await again.store.get('old'))).toEqual(['q', 'a'])
    expect(contents(await again.store.get('new'))).toEqual(['q', 'a', 'q2', 'a2'])
    expect((await again.store.list()).map(({ id }) => id).sort()).toEqual(
      ['new', 'old'].filter((id) => id === 'new' || id === 'old'),
    )
  })

  test('K5: a running checkpointer follows', async () => {
    const { store, clock, reopen } = await openStore()
    const session = await store.create({ id: 'old', messages: [user('q')] })
    const checkpoint = store.checkpoint('old', { everyMs: 1_000 })
    checkpoint.activity()
    await store.rotate('old', 'new')
    session.messages.push(assistant('after'))
    clock.advance(1_000)
    await until(() => clock.timers === 0 && session.updatedAt === clock.now(), 'the checkpoint')
    await checkpoint.stop()
    const again = await reopen()
    expect(contents(await again.store.get('new'))).toEqual(['q', 'after'])
    expect(contents(await again.store.get('old'))).toEqual(['q'])
  })

  test('K5: an existing new id is refused, in memory and on disk, and nothing changed', async () => {
    const { store, reopen } = await openStore()
    for (const id of ['old', 'taken']) await store.save(await store.create({ id, title: id }))
    await store.create({ id: 'unsaved' })
    for (const id of ['taken', 'unsaved', 'old']) {
      await expect(store.rotate('old', id)).rejects.toMatchObject({ code: 'ROTATION_REFUSED' })
    }
    await expect(store.rotate('unknown', 'x')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const again = await reopen()
    await expect(again.store.rotate('old', 'taken')).rejects.toMatchObject({ code: 'ROTATION_REFUSED' })
    expect(await again.store.get('old')).toMatchObject({ title: 'old', rotatedTo: null })
    expect(await again.store.get('taken')).toMatchObject({ title: 'taken' })
  })

  test('K5: a rotation that cannot be written leaves everything under the old id', async () => {
    for (let failAt = 1; failAt <= 3; failAt++) {
      let left = Infinity
      const { openFile } = faultyFiles((call) => (call === 'datasync' && --left < 0 ? diskError('EIO') : undefined))
      const { store, reopen } = await openStore({ openFile })
      const session = await store.create({ id: 'old', messages: [user('q')] })
      await store.beginTurn('old', { text: 'q2', runId: 'r1' })
      left = failAt - 1
      await expect(store.rotate('old', 'new')).rejects.toMatchObject({ code: 'WRITE_FAILED' })
      left = Infinity
      expect(session).toMatchObject({ id: 'old', activeRunId: 'r1', rotatedFrom: null, rotatedTo: null })
      expect(await store.get('old')).toBe(session)
      expect(await store.get('new')).toBeUndefined()
      expect(await store.endTurn('old', 'r1', [assistant('a2')])).toMatchObject({ status: 'ended' })
      const again = await reopen()
      expect(contents(await again.store.get('old'))).toEqual(['q', 'q2', 'a2'])
      await again.store.close()
    }
  })
})
