import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { contextMessages, type JournalPort, type RunEvent, type Session } from '../../src/sessions/index.js'
import { diskError, faultyFiles } from '../support/faulty-files.js'
import { gate } from '../support/gate.js'
import { assistant, openJournaledStore, openStore, user, type TestOptions } from './support.js'

/** A journal whose visible part a test decides. */
function visibleJournal() {
  const shown = { events: [] as RunEvent[], damaged: 0, reads: 0, failing: false }
  const journal: JournalPort = {
    append: () => Promise.resolve(),
    async *read(_sessionId, _runId, { after = 0 } = {}) {
      shown.reads += 1
      if (shown.failing) throw new Error('the file system is away')
      yield* shown.events.filter(({ seq }) => seq > after)
    },
    summary: () =>
      Promise.resolve({ state: 'running', damaged: Array.from({ length: shown.damaged }, (_, line) => ({ line })) }),
    delete: () => Promise.resolve(),
    move: () => Promise.resolve(),
    markSaved: () => Promise.resolve(),
  }
  let seq = 0
  const show = (event: string, payload: Record<string, unknown> = {}) => {
    seq += 1
    shown.events.push({ seq, event, payload, at: 1_000 + seq })
  }
  return { journal, shown, show, token: (text: string) => show('token', { text }) }
}

const GRACE = 30_001

/** A session whose turn was running when its process died, and the process that comes after it. */
async function interrupted(setup: TestOptions = {}) {
  const visible = visibleJournal()
  const before = await openStore({ journal: visible.journal, ...setup })
  await before.store.create({ id: 'a', messages: [user('earlier'), assistant('answer')] })
  await before.store.beginTurn('a', { text: 'question', runId: 'r1', attachments: ['file'] })
  const startedAt = before.clock.now()
  before.clock.advance(GRACE)
  const after = await before.reopen()
  const get = async () => (await after.store.get('a'))!
  const markerOf = (session: Session) => session.messages.find(({ interruption }) => interruption !== undefined)
  return { ...visible, ...after, startedAt, get, markerOf }
}

const own = (session: Session) => session.messages.slice(2)

describe('an interrupted turn', () => {
  test("Y1: the user's message, the journaled output and one marker are put in place, and the bookkeeping is cleared", async () => {
    const { store, journal, reopen, clock } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'question', runId: 'r1', attachments: ['file'] })
    const startedAt = clock.now()
    await journal.append('a', 'r1', 'token', { text: 'Let me ' })
    await journal.append('a', 'r1', 'token', { text: 'see.' })
    await journal.append('a', 'r1', 'tool', { name: 'search', args: { q: 'x' } })
    await journal.append('a', 'r1', 'tool_complete', { name: 'search', durationMs: 5, isError: false })
    await journal.append('a', 'r1', 'token', { text: 'Found' })
    clock.advance(GRACE)
    const again = await reopen()
    const session = (await again.store.get('a'))!
    expect(session.messages).toMatchObject([
      { role: 'user', content: 'question', timestamp: startedAt, attachments: ['file'] },
      { role: 'assistant', content: 'Let me see.', partial: true, recovered: { runId: 'r1' } },
      { role: 'assistant', content: 'Found', partial: true, recovered: { runId: 'r1' } },
      { role: 'assistant', interruption: { state: 'recovered' } },
    ])
    expect(session.toolCalls).toEqual([
      { name: 'search', messageIndex: 1, done: true, durationMs: 5, isError: false, args: { q: 'x' } },
    ])
    expect(session).toMatchObject({
      activeRunId: null,
      pendingUserMessage: null,
      pendingStartedAt: null,
      pendingAttachments: [],
    })
    const third = await again.reopen()
    expect((await third.store.get('a'))?.messages).toEqual(session.messages)
  })

  test('Y1: a run begun through this store is alive, however long it takes', async () => {
    const { store, clock } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    clock.advance(10 * GRACE)
    expect(await store.get('a')).toMatchObject({ activeRunId: 'r1', messages: [] })
  })

  test('Y1: so is one for which isRunAlive says so', async () => {
    const { get } = await interrupted({ isRunAlive: (_, runId) => Promise.resolve(runId === 'r1') })
    expect(await get()).toMatchObject({ activeRunId: 'r1', pendingUserMessage: 'question' })
  })

  test('Y1: within the grace period a turn of an earlier process is left alone', async () => {
    const { store, clock, reopen } = await openStore({ recovery: { graceMs: 1_000 } })
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    clock.advance(1_000)
    const again = await reopen()
    expect(await again.store.get('a')).toMatchObject({ activeRunId: 'r1', messages: [] })
    clock.advance(1)
    expect(await again.store.get('a')).toMatchObject({
      activeRunId: null,
      messages: [{ content: 'q' }, { role: 'assistant' }],
    })
  })

  test('Y1: a message that a host had put there itself stays the only one', async () => {
    const { store, clock, reopen } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await store.update('a', ({ messages }) => void messages.push(user('q', clock.now())))
    clock.advance(GRACE)
    const session = (await (await reopen()).store.get('a'))!
    expect(session.messages.filter(({ role }) => role === 'user')).toHaveLength(1)
  })

  test('Y2: while the journal is not visible the marker says that recovery is still possible', async () => {
    const { get, markerOf, clock, startedAt } = await interrupted()
    const session = await get()
    expect(own(session)).toMatchObject([
      { role: 'user', content: 'question', timestamp: startedAt },
      { interruption: { state: 'retrying', runId: 'r1', attempts: 0, firstSeenAt: clock.now() } },
    ])
    expect(markerOf(session)?.content).toContain('may still be recovered')
  })

  test('Y2: a store without a journal says nothing at once', async () => {
    const { store, clock, reopen } = await openStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    clock.advance(GRACE)
    const session = (await (await reopen()).store.get('a'))!
    expect(session.messages.at(-1)?.interruption).toEqual({ state: 'nothing' })
  })

  test('Y3: a later read inserts what has become visible above the marker, and updatedAt stays', async () => {
    const { get, token, show, clock, reopen } = await interrupted()
    const { updatedAt } = await get()
    clock.advance(5_000)
    token('partial')
    show('tool', { name: 'search', preview: 'p' })
    const session = await get()
    expect(own(session)).toMatchObject([
      { content: 'question' },
      { content: 'partial', recovered: { runId: 'r1' }, partial: true },
      { interruption: { state: 'recovered' } },
    ])
    expect(own(session)[2]?.interruption).toEqual({ state: 'recovered' })
    expect(session.toolCalls).toEqual([{ name: 'search', preview: 'p', messageIndex: 3, done: false }])
    expect(session.updatedAt).toBe(updatedAt)
    expect((await (await reopen()).store.get('a'))?.messages).toEqual(session.messages)
  })

  test('Y3: a tool before any text gets a message to belong to', async () => {
    const { get, show } = await interrupted()
    show('tool', { name: 'search' })
    const session = await get()
    expect(session.toolCalls[0]?.messageIndex).toBe(3)
    expect(session.messages[3]).toMatchObject({ role: 'assistant', content: '', recovered: { runId: 'r1' } })
  })

  test('Y4: a second reader gets the session at once and does not wait for the recovery', async () => {
    const door = gate()
    const visible = visibleJournal()
    const slow: JournalPort = {
      ...visible.journal,
      async *read(...args) {
        await door.passed
        yield* visible.journal.read(...args)
      },
    }
    const { store } = await interrupted({ journal: slow })
    const first = store.get('a')
    const second = await store.get('a')
    expect(second).toMatchObject({ activeRunId: 'r1' })
    door.open()
    expect(await first).toBe(second)
    expect(second).toMatchObject({ activeRunId: null })
  })

  test('Y4: a read that finds the lock taken skips recovery for that read', async () => {
    const { store, shown } = await interrupted()
    await store.lock('a').runExclusive(async () => {
      expect(await store.get('a')).toMatchObject({ activeRunId: 'r1' })
    })
    expect(shown.reads).toBe(0)
    expect(await store.get('a')).toMatchObject({ activeRunId: null })
  })

  test('Y5: a journal that is missing or empty costs no attempt, however often it is read', async () => {
    const { get, markerOf } = await interrupted()
    for (let read = 0; read < 40; read++) {
      expect(markerOf(await get())?.interruption).toMatchObject({ state: 'retrying', attempts: 0 })
    }
  })

  test.each(['sealed', 'readable', 'damaged'])(
    'Y5: a journal that is %s without output costs one attempt a read',
    async (kind) => {
      const { get, markerOf, show, shown } = await interrupted()
      await get()
      if (kind === 'sealed') show('stream_end')
      if (kind === 'readable') show('reasoning', { text: 'hm' })
      if (kind === 'damaged') shown.damaged = 1
      for (const attempts of [1, 2, 3]) expect(markerOf(await get())?.interruption).toMatchObject({ attempts })
    },
  )

  test('Y5: a journal that cannot be read now costs no attempt and never raises into the read', async () => {
    const { get, markerOf, shown } = await interrupted()
    await get()
    shown.failing = true
    for (let read = 0; read < 20; read++) {
      expect(markerOf(await get())?.interruption).toMatchObject({ state: 'retrying', attempts: 0 })
    }
  })

  test('Y2: a journal that cannot be read when the turn is found leaves a marker that still hopes', async () => {
    const { get, shown, token, markerOf } = await interrupted()
    shown.failing = true
    token('late')
    expect(markerOf(await get())?.interruption).toMatchObject({ state: 'retrying', attempts: 0 })
    shown.failing = false
    expect(own(await get()).map(({ content }) => content)).toContain('late')
  })

  test('K4: a cancel whose journal cannot be read now keeps a place for the output, which a later read brings', async () => {
    const visible = visibleJournal()
    const { store } = await openStore({ journal: visible.journal })
    const session = await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    visible.token('partial')
    visible.shown.failing = true
    expect(await store.cancelRun('a', 'r1')).toMatchObject({ status: 'cancelled' })
    expect(session).toMatchObject({
      activeRunId: null,
      messages: [{ content: 'q' }, { interruption: { state: 'retrying' } }],
    })
    visible.shown.failing = false
    await store.get('a')
    expect(session.messages.map(({ content }) => content).slice(0, 2)).toEqual(['q', 'partial'])
  })

  test('Y6: the 12th attempt that finds nothing gives up, for good', async () => {
    const { get, markerOf, show, token, shown, reopen } = await interrupted()
    await get()
    show('stream_end')
    for (let attempt = 1; attempt < 12; attempt++) {
      expect(markerOf(await get())?.interruption).toMatchObject({ state: 'retrying', attempts: attempt })
    }
    const session = await get()
    expect(markerOf(session)?.interruption).toEqual({ state: 'lost' })
    expect(session.recoveries).toEqual([])
    const { reads } = shown
    token('too late')
    expect(markerOf(await get())?.interruption).toEqual({ state: 'lost' })
    expect(shown.reads).toBe(reads)
    expect((await (await reopen()).store.get('a'))?.messages).toEqual(session.messages)
  })

  test('Y6: 24 hours after the marker was first seen it gives up without reading the journal', async () => {
    const { get, markerOf, clock, token, shown } = await interrupted()
    await get()
    clock.advance(24 * 3_600_000 - 1)
    expect(markerOf(await get())?.interruption).toMatchObject({ state: 'retrying' })
    const { reads } = shown
    token('too late')
    clock.advance(1)
    expect(markerOf(await get())?.interruption).toEqual({ state: 'lost' })
    expect(shown.reads).toBe(reads)
  })

  test('Y6: both limits are options', async () => {
    const { get, markerOf, show } = await interrupted({ recovery: { maxAttempts: 2 } })
    await get()
    show('stream_end')
    await get()
    expect(markerOf(await get())?.interruption).toEqual({ state: 'lost' })
    const other = await interrupted({ recovery: { giveUpMs: 10 } })
    await other.get()
    other.clock.advance(10)
    expect(other.markerOf(await other.get())?.interruption).toEqual({ state: 'lost' })
  })

  test('Y7: output that arrives later is merged by number, each event once', async () => {
    const { get, token, show, reopen } = await interrupted()
    token('one ')
    expect(own(await get())[1]?.content).toBe('one ')
    token('two ')
    show('tool', { name: 'search' })
    token('three')
    const session = await get()
    expect(
      own(session)
        .map(({ content }) => content)
        .slice(0, 3),
    ).toEqual(['question', 'one two ', 'three'])
    expect(session.toolCalls).toMatchObject([{ name: 'search', messageIndex: 3 }])
    expect(session.recoveries).toMatchObject([{ runId: 'r1', lastSeq: 4 }])
    const again = (await (await reopen()).store.get('a'))!
    expect(again.messages).toEqual(session.messages)
  })

  test('Y7: events that were missing in the middle find their place', async () => {
    const { get, token, shown } = await interrupted()
    for (const text of ['a', 'b', 'c']) token(text)
    const hidden = shown.events.splice(1, 1)
    expect(own(await get())[1]?.content).toBe('ac')
    shown.events.push(...hidden)
    expect(own(await get())[1]?.content).toBe('abc')
  })

  test('Y7: what was recovered does not vanish when the journal shows less', async () => {
    const { get, token, shown } = await interrupted()
    for (const text of ['a', 'b', 'c']) token(text)
    shown.events.splice(1, 1)
    await get()
    shown.events.splice(0)
    expect(own(await get())[1]?.content).toBe('ac')
  })

  test('Y7: recovery reaches a marker behind later turns, and tool cards stay with their messages', async () => {
    const { store, get, token, show } = await interrupted()
    await get()
    await store.beginTurn('a', { text: 'next', runId: 'r2' })
    await store.endTurn('a', 'r2', [assistant('next answer')], {
      toolCalls: [{ name: 'late', messageIndex: 0, done: true }],
    })
    token('recovered text')
    show('tool', { name: 'early' })
    const session = await get()
    expect(own(session).map(({ content, interruption }) => interruption?.state ?? content)).toEqual([
      'question',
      'recovered text',
      'recovered',
      'next',
      'next answer',
    ])
    expect(session.toolCalls.map(({ name, messageIndex }) => [name, session.messages[messageIndex]?.content])).toEqual([
      ['early', 'recovered text'],
      ['late', 'next answer'],
    ])
  })

  test("Y7: recovered text reaches the model's context once, and markers never do", async () => {
    const { get, token } = await interrupted()
    await get()
    token('re')
    await get()
    token('covered')
    const context = contextMessages(await get())
    expect(context.map(({ content }) => content)).toEqual(['earlier', 'answer', 'question', 'recovered'])
  })

  test('Y7: what a checkpoint had saved of the answer is not recovered a second time', async () => {
    const { store, journal, clock, reopen } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await journal.append('a', 'r1', 'token', { text: 'Hello world' })
    await store.update('a', ({ messages, toolCalls }) => {
      messages.push(user('q', clock.now()), assistant('Hello'))
      toolCalls.push({ name: 'search', messageIndex: 1, done: false })
    })
    await journal.append('a', 'r1', 'tool', { name: 'search' })
    clock.advance(GRACE)
    const session = (await (await reopen()).store.get('a'))!
    expect(contextMessages(session).map(({ content }) => content)).toEqual(['q', 'Hello world'])
    expect(session.toolCalls).toMatchObject([{ name: 'search', messageIndex: 1 }])
  })

  test('Y7: a turn that was undone meanwhile is not brought back', async () => {
    const { store, get, token } = await interrupted()
    await get()
    await store.undoLast('a')
    token('ghost')
    const session = await get()
    expect(session.messages.map(({ content }) => content)).toEqual(['earlier', 'answer'])
    expect(session.recoveries).toEqual([])
  })

  test('Y8: a run that was done is completed silently: output in place, no marker', async () => {
    const { get, token, show } = await interrupted()
    token('the whole answer')
    show('done')
    const session = await get()
    expect(own(session)).toMatchObject([{ content: 'question' }, { content: 'the whole answer' }])
    expect(own(session)).toHaveLength(2)
    expect(own(session)[1]).not.toHaveProperty('partial')
  })

  test('Y8: a marker left by an earlier read is removed', async () => {
    const { get, token, show } = await interrupted()
    await get()
    token('the whole ')
    expect((await get()).messages.at(-1)?.interruption).toEqual({ state: 'recovered' })
    token('answer')
    show('done')
    const session = await get()
    expect(own(session).map(({ content }) => content)).toEqual(['question', 'the whole answer'])
    expect(session.recoveries).toEqual([])
  })

  test('Y9: a recovery that cannot be saved does not raise into the read, and is done again', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('ENOSPC') : undefined))
    const { get, token, logger, reopen } = await interrupted({ openFile })
    token('text')
    failing = true
    const session = await get()
    expect(own(session)).toMatchObject([
      { content: 'question' },
      { content: 'text' },
      { interruption: { state: 'recovered' } },
    ])
    expect(logger.lines.map(({ message }) => message)).toContain('an interrupted turn could not be recovered now')
    failing = false
    const again = (await (await reopen()).store.get('a'))!
    expect(again.messages).toEqual(session.messages)
  })

  test('Y9: a crash after any byte of the recovery and any number of repeats give the same transcript', async () => {
    const { get, token, show, store, fileOf, directory, clock, journal } = await interrupted()
    token('text')
    show('tool', { name: 'search' })
    const bytesBefore = await readFile(fileOf('a'))
    const expected = structuredClone((await get()).messages)
    const bytesAfter = await readFile(fileOf('a'))
    await store.close()
    for (let length = bytesBefore.length; length <= bytesAfter.length; length += 11) {
      await writeFile(fileOf('a'), bytesAfter.subarray(0, length))
      for (const _repeat of [1, 2]) {
        const again = await openStore({ directory, clock, journal })
        expect((await again.store.get('a'))?.messages).toEqual(expected)
        await again.store.close()
      }
    }
  })

  test('Y9: an isRunAlive that throws does not raise into the read and ends nothing', async () => {
    const { get } = await interrupted({
      isRunAlive: () => {
        throw new Error('registry away')
      },
    })
    expect(await get()).toMatchObject({ activeRunId: 'r1' })
  })

  test('J6: a journal may go only when the transcript holds its run on stable storage', async () => {
    const { store, journal, journalDirectory, reopen } = await openJournaledStore()
    await store.create({ id: 'a' })
    await store.beginTurn('a', { text: 'q', runId: 'r1' })
    await journal.append('a', 'r1', 'token', { text: 'x' })
    await store.endTurn('a', 'r1', [assistant('x')])
    expect((await journal.prune({ maxBytes: 0 })).removed).toBe(0)
    await store.flushAll()
    expect((await journal.prune({ maxBytes: 0 })).removed).toBe(1)
    await store.beginTurn('a', { text: 'q', runId: 'r2' })
    await store.cancelRun('a', 'r2')
    await reopen()
    expect((await journal.prune({ maxBytes: 0 })).removed).toBe(1)
    expect(await readFile(join(journalDirectory, 'a', 'r2.jsonl')).catch(() => 'gone')).toBe('gone')
  })

  test('J6: a run that put out nothing leaves a journal with its end, which may go as well', async () => {
    const { store, journal } = await openJournaledStore()
    await store.create({ id: 'a' })
    for (const [runId, fsync] of [
      ['r1', true],
      ['r2', false],
    ] as const) {
      await store.beginTurn('a', { text: 'go', runId })
      await store.endTurn('a', runId, [{ role: 'assistant', content: 'done' }], { fsync })
    }
    await store.flushAll()
    expect(await journal.prune({ maxAgeMs: 0 })).toMatchObject({ removed: 2 })
  })

  test('J6: deleting a session deletes its journals', async () => {
    const { store, journal } = await openJournaledStore()
    await store.save(await store.create({ id: 'a' }))
    await journal.append('a', 'r1', 'token', { text: 'x' })
    await store.delete('a')
    expect((await journal.summary('a', 'r1')).state).toBe('unknown')
  })
})

describe('a rotation that a crash cut short', () => {
  /** The files as they were after each step, as if the process had died there. */
  async function crashAfter(step: 1 | 2) {
    const { store, journal, clock, directory, fileOf } = await openJournaledStore()
    await store.create({ id: 'old', messages: [user('q')] })
    await store.beginTurn('old', { text: 'q2', runId: 'r1' })
    await journal.append('old', 'r1', 'token', { text: 'partial' })
    await store.rotate('old', 'new')
    const lines = (await readFile(fileOf('old'), 'utf8')).trimEnd().split('\n')
    const old = lines.slice(0, -1).join('\n') + '\n'
    const fresh = await readFile(fileOf('new'))
    await store.close()
    await journal.move('new', 'old', 'r1')
    await writeFile(fileOf('old'), old)
    if (step === 2) await writeFile(fileOf('new'), fresh)
    else await rm(fileOf('new'))
    clock.advance(GRACE)
    return openStore({ directory, journal, clock })
  }

  test('K5: before the new file was there, the turn stays with the old id', async () => {
    const { store } = await crashAfter(1)
    expect(await store.get('new')).toBeUndefined()
    const session = (await store.get('old'))!
    expect(session.rotatedTo).toBeNull()
    expect(session.messages.map(({ content }) => content).slice(0, 3)).toEqual(['q', 'q2', 'partial'])
  })

  test("K5: after it was there, the turn is the new id's alone, and its journal is found at the old one", async () => {
    const { store } = await crashAfter(2)
    const old = (await store.get('old'))!
    expect(old).toMatchObject({ rotatedTo: 'new', activeRunId: null, pendingUserMessage: null })
    expect(old.messages).toEqual([user('q')])
    const fresh = (await store.get('new'))!
    expect(fresh.messages.map(({ content }) => content).slice(0, 3)).toEqual(['q', 'q2', 'partial'])
  })
})
