import { appendFile, mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { RunJournal, type JournalEvent, type RunJournalOptions } from '../../src/journal/index.js'
import { stateAfter } from '../../src/journal/run-state.js'
import type { JournalEventName, RunState } from '../../src/journal/types.js'
import { openLogFile, type OpenLogFile } from '../../src/log/files.js'
import { encodeLine, serialiseFields } from '../../src/log/line.js'
import { diskError, faultyFiles } from '../support/faulty-files.js'
import { manualTime } from '../support/manual-time.js'
import { temporaryDirectory } from '../support/temporary.js'

async function openJournal(options: Partial<RunJournalOptions> = {}) {
  const directory = options.directory ?? (await temporaryDirectory())
  const journal = await RunJournal.open({ ...options, directory })
  onTestFinished(() => journal.close())
  const path = join(directory, 's', 'r.jsonl')
  const token = (text: string) => journal.append('s', 'r', 'token', { text })
  return { journal, directory, path, token }
}

async function collect(events: AsyncIterable<JournalEvent>): Promise<JournalEvent[]> {
  const all: JournalEvent[] = []
  for await (const event of events) all.push(event)
  return all
}

const texts = (events: readonly JournalEvent[]) => events.map(({ payload }) => payload['text'])

describe('appending', () => {
  test('J1: events are numbered 1, 2, 3 and come back in order', async () => {
    const { journal, token } = await openJournal()
    expect([await token('Hello'), await token(' world')]).toEqual([{ seq: 1 }, { seq: 2 }])
    const events = await collect(journal.read('s', 'r'))
    expect(events).toMatchObject([
      { seq: 1, event: 'token', payload: { text: 'Hello' } },
      { seq: 2, event: 'token', payload: { text: ' world' } },
    ])
    expect(events[0]?.at).toBeGreaterThan(0)
  })

  test('J1: many concurrent writers leave no gap, and each sees its events in the order it wrote them', async () => {
    const { journal, path } = await openJournal()
    await Promise.all(
      Array.from({ length: 20 }, async (_, writer) => {
        for (let n = 0; n < 25; n++) await journal.append('s', 'r', 'token', { text: `${writer}:${n}` })
      }),
    )
    const lines = (await readFile(path, 'utf8')).trimEnd().split('\n').slice(1)
    expect(lines.map((line) => (JSON.parse(line) as JournalEvent).seq)).toEqual(
      Array.from({ length: 500 }, (_, n) => n + 1),
    )
    const events = await collect(journal.read('s', 'r'))
    for (let writer = 0; writer < 20; writer++) {
      const own = texts(events).filter((text) => String(text).startsWith(`${writer}:`))
      expect(own).toEqual(Array.from({ length: 25 }, (_, n) => `${writer}:${n}`))
    }
  })

  test('J1: tokens that nobody waits for keep their order, also while the file is being opened', async () => {
    const { journal, token } = await openJournal()
    const pending: Promise<unknown>[] = []
    for (let n = 0; n < 200; n++) {
      pending.push(token(String(n)))
      await Promise.resolve()
    }
    await Promise.all(pending)
    expect(texts(await collect(journal.read('s', 'r')))).toEqual(Array.from({ length: 200 }, (_, n) => String(n)))
  })

  test('J1: an event that cannot be serialised is refused and leaves no gap', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    const circular: Record<string, unknown> = {}
    circular['self'] = circular
    await expect(journal.append('s', 'r', 'done', circular)).rejects.toThrow(TypeError)
    await expect(journal.append('s', 'r', 'done', { big: 1n })).rejects.toThrow(TypeError)
    await expect(journal.append('s', 'r', 'done', { toJSON: () => 'text' })).rejects.toThrow(TypeError)
    expect(await token('b')).toEqual({ seq: 2 })
  })

  test('J1: an event that carries nothing may go without a payload', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    expect(await journal.append('s', 'r', 'done')).toEqual({ seq: 2 })
    expect(await journal.summary('s', 'r')).toMatchObject({ state: 'completed', lastSeq: 2 })
    await expect(journal.append('s', 'r', 'done', (() => undefined) as never)).rejects.toThrow(/plain object/)
    // @ts-expect-error a token has a text
    await expect(journal.append('s', 'r', 'token')).resolves.toEqual({ seq: 3 })
  })

  test('J1: an unknown event is a mistake of the caller', async () => {
    const { journal } = await openJournal()
    await expect(journal.append('s', 'r', 'tokens' as 'token', { text: '' })).rejects.toThrow(TypeError)
    expect((await journal.summary('s', 'r')).state).toBe('unknown')
  })

  test('J1: numbering goes on after a restart', async () => {
    const { journal, directory, token } = await openJournal()
    await token('a')
    await journal.close()
    const again = await openJournal({ directory })
    expect(await again.token('b')).toEqual({ seq: 2 })
  })

  test('J1: a full disk rejects the event; the next one takes its number', async () => {
    let full = false
    const { openFile } = faultyFiles((call) => (call === 'write' && full ? diskError('ENOSPC') : undefined))
    const { journal, token } = await openJournal({ openFile })
    await token('a')
    full = true
    await expect(token('b')).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    full = false
    expect(await token('c')).toEqual({ seq: 2 })
    expect(texts(await collect(journal.read('s', 'r')))).toEqual(['a', 'c'])
  })

  test('a closed journal says so', async () => {
    const { journal, token } = await openJournal()
    await journal.close()
    await expect(token('a')).rejects.toMatchObject({ code: 'CLOSED' })
  })

  test('more runs than may be open are all kept', async () => {
    const { journal } = await openJournal({ maxOpenRuns: 2 })
    for (const round of [1, 2]) {
      for (const run of ['a', 'b', 'c', 'd']) {
        expect(await journal.append('s', run, 'token', { text: 'x' })).toEqual({ seq: round })
      }
    }
  })

  test('runs that take turns keep their files open; a run that has ended gives its file back', async () => {
    let opened = 0
    let open = 0
    const openFile: OpenLogFile = async (path, flags) => {
      const file = await openLogFile(path, flags)
      opened += 1
      open += 1
      return {
        ...file,
        async close() {
          open -= 1
          await file.close()
        },
      }
    }
    const { journal } = await openJournal({ openFile })
    const runs = Array.from({ length: 300 }, (_, at) => `run-${at}`)
    for (let round = 0; round < 3; round++) {
      await Promise.all(runs.map((run) => journal.append('s', run, 'token', { text: 'x' })))
    }
    // Once to put the file in place, once to append to it.
    expect({ opened, open }).toEqual({ opened: 2 * runs.length, open: runs.length })
    await Promise.all(runs.map((run) => journal.append('s', run, 'done', {})))
    expect({ opened, open }).toEqual({ opened: 2 * runs.length, open: 0 })
    expect(await journal.append('s', 'run-0', 'stream_end', {})).toEqual({ seq: 5 })
    expect(open).toBe(0)
  })
})

test('many live runs are synced and closed with a bounded number of open files', async () => {
  let open = 0
  let most = 0
  const openFile: OpenLogFile = async (path, flags) => {
    const file = await openLogFile(path, flags)
    most = Math.max(most, ++open)
    return { ...file, close: () => file.close().finally(() => open--) }
  }
  const { journal } = await openJournal({ openFile })
  for (let n = 0; n < 700; n++) await journal.append('s', `r${n}`, 'token', { text: 'a' })
  most = 0
  await journal.close()
  expect(open).toBe(0)
  // Those of the runs, and a few for syncing.
  expect(most).toBeLessThanOrEqual(700 + 2 * 16)
})

describe('the state of a run', () => {
  const cases: [string, [JournalEventName, object][], RunState][] = [
    ['tokens only', [['token', {}]], 'running'],
    [
      'reasoning, interim and tools end nothing',
      [
        ['reasoning', {}],
        ['interim', {}],
        ['tool', {}],
        ['tool_complete', {}],
      ],
      'running',
    ],
    [
      'done',
      [
        ['token', {}],
        ['done', {}],
      ],
      'completed',
    ],
    ['cancel', [['cancel', {}]], 'interrupted-by-user'],
    ['error of type cancelled', [['error', { type: 'cancelled' }]], 'interrupted-by-user'],
    ['error of type interrupted', [['error', { type: 'interrupted' }]], 'interrupted-by-crash'],
    ['any other error', [['error', { message: 'x' }]], 'errored'],
    [
      'sealed without an end',
      [
        ['token', {}],
        ['stream_end', {}],
      ],
      'ended',
    ],
    ['only a seal', [['stream_end', {}]], 'ended'],
    [
      'sealed after an end',
      [
        ['done', {}],
        ['stream_end', {}],
      ],
      'completed',
    ],
    [
      'the last ending event counts',
      [
        ['error', {}],
        ['done', {}],
        ['cancel', {}],
      ],
      'interrupted-by-user',
    ],
    [
      'output after an end changes nothing',
      [
        ['done', {}],
        ['token', {}],
      ],
      'completed',
    ],
    [
      'an end after the seal counts',
      [
        ['stream_end', {}],
        ['done', {}],
      ],
      'completed',
    ],
  ]
  test.each(cases)('J2: %s', (_, events, expected) => {
    const state = events.reduce<RunState>(
      (before, [event, payload]) => stateAfter(before, event, { ...payload }),
      'unknown',
    )
    expect(state).toBe(expected)
  })

  test('J2: summary reads it from the file; a run without a journal is unknown', async () => {
    const { journal, token } = await openJournal()
    expect(await journal.summary('s', 'r')).toEqual({ state: 'unknown', lastSeq: 0, damaged: [] })
    await token('a')
    expect(await journal.summary('s', 'r')).toEqual({ state: 'running', lastSeq: 1, damaged: [] })
    await journal.append('s', 'r', 'error', { message: 'gone', type: 'interrupted' })
    expect((await journal.summary('s', 'r')).state).toBe('interrupted-by-crash')
  })
})

describe('when an event is durable', () => {
  const syncs = (calls: readonly string[]) => calls.filter((call) => call === 'datasync').length

  test('J3: by default only the events that end a run are synced before append resolves', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { journal, token } = await openJournal({ openFile })
    await token('a')
    await journal.append('s', 'r', 'tool', { name: 'search' })
    expect(syncs(calls)).toBe(0)
    await journal.append('s', 'r', 'done', {})
    expect(syncs(calls)).toBe(1)
  })

  test('J3: eager syncs every event, and many appends share one flush', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { token } = await openJournal({ openFile, fsync: 'eager' })
    await token('a')
    expect(syncs(calls)).toBe(1)
    await Promise.all(Array.from({ length: 100 }, (_, n) => token(String(n))))
    expect(syncs(calls)).toBe(2)
  })

  test('J3: interval syncs what was written when the interval is over, and only then', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const clock = manualTime()
    const { journal, token } = await openJournal({ openFile, clock, fsync: 'interval', intervalMs: 500 })
    await token('a')
    await journal.append('s', 'r', 'done', {})
    clock.advance(499)
    expect(syncs(calls)).toBe(0)
    clock.advance(1)
    await journal.close()
    expect(syncs(calls)).toBe(1)
    expect(clock.timers).toBe(0)
  })

  test('J3: interval also syncs a run that was put away before the interval was over', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { journal, token } = await openJournal({ openFile, fsync: 'interval', maxOpenRuns: 1, clock: manualTime() })
    await token('a')
    await journal.append('s', 'other', 'token', { text: 'b' })
    await journal.close()
    expect(syncs(calls)).toBe(2)
  })

  test('J3: after a failed sync the journal is written anew, with its numbers, and goes on', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'datasync' && failing ? diskError('EIO') : undefined))
    const { journal, token } = await openJournal({ openFile })
    await token('a')
    failing = true
    await expect(journal.append('s', 'r', 'done', {})).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    failing = false
    // The failed event may or may not be there (a failure is no promise of absence); nothing before it is lost.
    expect(await token('b')).toEqual({ seq: 3 })
    expect(texts(await collect(journal.read('s', 'r')))).toEqual(['a', undefined, 'b'])
    expect((await journal.summary('s', 'r')).damaged).toEqual([])
  })
})

describe('damage', () => {
  test('J4: a torn tail is sealed on the next append and costs only the torn record', async () => {
    const { journal, directory, path, token } = await openJournal()
    await token('a')
    await token('b')
    await journal.close()
    await truncate(path, (await stat(path)).size - 7)
    const again = await openJournal({ directory })
    expect(await again.token('c')).toEqual({ seq: 2 })
    expect(texts(await collect(again.journal.read('s', 'r')))).toEqual(['a', 'c'])
    expect(await again.journal.summary('s', 'r')).toEqual({ state: 'running', lastSeq: 2, damaged: [{ line: 3 }] })
  })

  test('J4: text with U+2028, U+2029 and U+0085 is not split', async () => {
    const { journal, token } = await openJournal()
    const text = 'a\u2028b\u2029c\u0085d\r\ne'
    await token(text)
    expect(texts(await collect(journal.read('s', 'r')))).toEqual([text])
    expect((await journal.summary('s', 'r')).damaged).toEqual([])
  })

  test('J4: an invalid byte costs one line, and summary names it', async () => {
    const { journal, path, token } = await openJournal()
    for (const text of ['a', 'b', 'c']) await token(text)
    const bytes = await readFile(path)
    bytes[bytes.indexOf('"b"') + 1] = 0xff
    await writeFile(path, bytes)
    expect(texts(await collect(journal.read('s', 'r')))).toEqual(['a', 'c'])
    expect((await journal.summary('s', 'r')).damaged).toEqual([{ line: 3 }])
  })

  test('J4: flipping any byte never throws, never shows a wrong event, costs at most two, and is reported', async () => {
    const { journal, path, token } = await openJournal()
    for (const text of ['a', 'ü', 'c']) await token(text)
    await journal.append('s', 'r', 'done', {})
    const whole = await collect(journal.read('s', 'r'))
    const bytes = await readFile(path)
    for (let at = 0; at < bytes.length; at++) {
      for (const mask of [0x01, 0x20, 0xff, bytes[at]! ^ 0x0a]) {
        if (mask === 0) continue
        const flipped = Buffer.from(bytes)
        flipped[at] = flipped[at]! ^ mask
        await writeFile(path, flipped)
        const events = await collect(journal.read('s', 'r'))
        for (const event of events) expect(whole).toContainEqual(event)
        // A line feed that is gone joins two lines.
        expect(events.length).toBeGreaterThanOrEqual(whole.length - 2)
        expect((await journal.summary('s', 'r')).damaged.length, `byte ${at}`).toBeGreaterThan(0)
      }
    }
  })

  test('J4: cutting the file at any byte gives whole events only, and appending goes on', async () => {
    const { journal, directory, path, token } = await openJournal()
    for (const text of ['a', 'b', 'c']) await token(text)
    await journal.close()
    const bytes = await readFile(path)
    for (let length = 0; length <= bytes.length; length++) {
      await writeFile(path, bytes.subarray(0, length))
      const again = await RunJournal.open({ directory })
      const before = await collect(again.read('s', 'r'))
      expect(texts(before)).toEqual(['a', 'b', 'c'].slice(0, before.length))
      expect(await again.append('s', 'r', 'token', { text: 'next' })).toEqual({ seq: before.length + 1 })
      expect(texts(await collect(again.read('s', 'r')))).toEqual([...texts(before), 'next'])
      await again.close()
    }
  })

  test('a journal of a newer version is refused, also for appending', async () => {
    const { journal, directory, path, token } = await openJournal()
    await token('a')
    await journal.close()
    await writeFile(path, encodeLine(0, serialiseFields({ format: 'tidemark-journal', version: 2 })))
    const again = await openJournal({ directory })
    await expect(again.token('b')).rejects.toMatchObject({ code: 'FILE_NEWER' })
    await expect(again.journal.summary('s', 'r')).rejects.toMatchObject({ code: 'FILE_NEWER' })
  })
})

describe('reading behind a cursor', () => {
  test('J5: gives what is behind the cursor, up to the limit', async () => {
    const { journal, token } = await openJournal()
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => token(String(n + 1))))
    const seqs = async (options: { after?: number; limit?: number }) =>
      (await collect(journal.read('s', 'r', options))).map(({ seq }) => seq)
    expect(await seqs({ after: 997 })).toEqual([998, 999, 1_000])
    expect(await seqs({ after: 500, limit: 2 })).toEqual([501, 502])
    expect(await seqs({ limit: 0 })).toEqual([])
    expect(await seqs({ after: 1_000 })).toEqual([])
    expect(await seqs({ after: 5_000 })).toEqual([])
  })

  test('J5: any cursor in any journal gives the same as filtering the whole', async () => {
    const { journal, token, path } = await openJournal()
    await Promise.all(Array.from({ length: 400 }, (_, n) => token('x'.repeat((n * 37) % 300))))
    const bytes = await readFile(path)
    for (const at of [5_000, 20_000, bytes.length - 3]) bytes[at] = 0
    await writeFile(path, bytes)
    const whole = await collect(journal.read('s', 'r'))
    await fc.assert(
      fc.asyncProperty(fc.nat(410), async (after) => {
        expect(await collect(journal.read('s', 'r', { after }))).toEqual(whole.filter(({ seq }) => seq > after))
      }),
      { numRuns: 60 },
    )
  })

  test('J5: a cursor or limit that is no number is a mistake of the caller', async () => {
    const { journal } = await openJournal()
    await expect(collect(journal.read('s', 'r', { after: -1 }))).rejects.toThrow(TypeError)
    await expect(collect(journal.read('s', 'r', { limit: NaN }))).rejects.toThrow(TypeError)
  })
})

describe('retention', () => {
  async function threeRuns() {
    const clock = manualTime(Date.now())
    const opened = await openJournal({ clock })
    for (const run of ['old', 'new', 'unsaved'])
      await opened.journal.append('s', run, 'token', { text: 'x'.repeat(1_000) })
    await opened.journal.markSaved('s', 'old')
    await opened.journal.markSaved('s', 'new')
    const past = new Date(clock.now() - 10_000)
    for (const run of ['old', 'unsaved']) await utimes(join(opened.directory, 's', `${run}.jsonl`), past, past)
    const runs = async () =>
      (await readdir(join(opened.directory, 's'))).filter((name) => name.endsWith('.jsonl')).sort()
    return { ...opened, runs }
  }

  test('J6: only journals that are recorded as saved go, after an age', async () => {
    const { journal, runs } = await threeRuns()
    expect(await journal.prune({ maxAgeMs: 5_000 })).toMatchObject({ removed: 1 })
    expect(await runs()).toEqual(['new.jsonl', 'unsaved.jsonl'])
  })

  test('J6: only journals that are recorded as saved go, oldest first, until the rest fits', async () => {
    const { journal, runs } = await threeRuns()
    expect((await journal.prune({ maxBytes: 2_500 })).removed).toBe(1)
    expect(await runs()).toEqual(['new.jsonl', 'unsaved.jsonl'])
    expect((await journal.prune({ maxBytes: 0 })).removed).toBe(1)
    expect(await runs()).toEqual(['unsaved.jsonl'])
  })

  test('J6: without a limit nothing goes', async () => {
    const { journal } = await threeRuns()
    expect(await journal.prune({})).toEqual({ removed: 0, bytes: 0 })
  })

  test('J6: what is no journal in the directory does not stop it', async () => {
    const { journal, directory, token } = await openJournal()
    await token('a')
    await journal.markSaved('s', 'r')
    await writeFile(join(directory, 'a-file'), '')
    expect(await journal.prune({ maxAgeMs: 0 })).toMatchObject({ removed: 1 })
  })

  test('J6: nor does a session that is deleted meanwhile', async () => {
    const { journal } = await openJournal()
    for (let n = 0; n < 50; n++) await journal.append(`s${n}`, 'r', 'token', { text: 'a' })
    const pruning = journal.prune({ maxAgeMs: 0 })
    await Promise.all(Array.from({ length: 50 }, (_, n) => journal.delete(`s${n}`)))
    expect(await pruning).toEqual({ removed: 0, bytes: 0 })
  })

  test('J6: deleting a session deletes its journals, and no others', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    await journal.append('s2', 'r', 'token', { text: 'b' })
    await journal.delete('s')
    expect((await journal.summary('s', 'r')).state).toBe('unknown')
    expect((await journal.summary('s2', 'r')).lastSeq).toBe(1)
    expect(await token('again')).toEqual({ seq: 1 })
  })

  test('J6: deleting one run leaves the others', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    await journal.append('s', 'other', 'token', { text: 'b' })
    await journal.delete('s', 'r')
    expect((await journal.summary('s', 'r')).state).toBe('unknown')
    expect((await journal.summary('s', 'other')).lastSeq).toBe(1)
  })

  test.each(['..', 'a/b', ''])('J6: the id %j is refused as a session and as a run', async (id) => {
    const { journal, directory } = await openJournal()
    await expect(journal.append(id, 'r', 'token', { text: '' })).rejects.toThrow(TypeError)
    await expect(journal.append('s', id, 'token', { text: '' })).rejects.toThrow(TypeError)
    await expect(collect(journal.read(id, 'r'))).rejects.toThrow(TypeError)
    await expect(journal.delete(id)).rejects.toThrow(TypeError)
    expect(await readdir(directory)).toEqual([])
  })
})

describe('a session that gets a new id', () => {
  test('K5: the journal of a running run follows, also for a writer that still uses the old id', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    const during = token('b')
    const moving = journal.move('s', 's2', 'r')
    const after = token('c')
    await Promise.all([during, moving, after])
    expect(await token('d')).toEqual({ seq: 4 })
    expect(texts(await collect(journal.read('s2', 'r')))).toEqual(['a', 'b', 'c', 'd'])
  })

  test('K5: a run that comes back to its first session is found there', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    await journal.move('s', 's2', 'r')
    await journal.move('s2', 's', 'r')
    expect(await token('b')).toEqual({ seq: 2 })
    expect(await journal.append('s2', 'r', 'token', { text: 'c' })).toEqual({ seq: 3 })
    expect((await journal.summary('s', 'r')).lastSeq).toBe(3)
  })

  test('K5: a run that is moved to where it is stays there', async () => {
    const { journal, token } = await openJournal()
    await token('a')
    await journal.move('s', 's', 'r')
    expect(await token('b')).toEqual({ seq: 2 })
  })

  test('K5: a run without a journal yet is moved as well', async () => {
    const { journal, token } = await openJournal()
    await journal.move('s', 's2', 'r')
    await token('a')
    expect((await journal.summary('s2', 'r')).lastSeq).toBe(1)
  })

  test('K5: the old id still leads to the run after so many others that it was put away meanwhile', async () => {
    const { journal, token } = await openJournal({ maxOpenRuns: 1 })
    await token('a')
    await journal.move('s', 's2', 'r')
    for (let n = 0; n < 3; n++) await journal.append('other', `r${n}`, 'token', { text: '' })
    expect(await token('b')).toEqual({ seq: 2 })
    expect(texts(await collect(journal.read('s', 'r')))).toEqual(['a', 'b'])
  })

  test('K5: a journal that cannot be moved goes on where it is, under both ids, and nothing appended is lost', async () => {
    const { journal, directory, token } = await openJournal()
    await token('a')
    await mkdir(join(directory, 's2', 'r.jsonl'), { recursive: true })
    const moving = journal.move('s', 's2', 'r')
    const during = token('b')
    await expect(moving).rejects.toMatchObject({ code: 'EISDIR' })
    expect(await during).toEqual({ seq: 2 })
    expect(await journal.append('s2', 'r', 'token', { text: 'c' })).toEqual({ seq: 3 })
    for (const id of ['s', 's2']) expect(texts(await collect(journal.read(id, 'r')))).toEqual(['a', 'b', 'c'])
    await rm(join(directory, 's2', 'r.jsonl'), { recursive: true })
    await journal.move('s', 's2', 'r')
    expect(await token('d')).toEqual({ seq: 4 })
    expect(await readdir(join(directory, 's2'))).toEqual(['r.jsonl'])
  })
})

test('a line of rubbish at the end of a journal does not stop the next append', async () => {
  const { journal, directory, path, token } = await openJournal()
  await token('a')
  await journal.close()
  await appendFile(path, 'rubbish')
  const again = await openJournal({ directory })
  await again.token('b')
  expect(texts(await collect(again.journal.read('s', 'r')))).toEqual(['a', 'b'])
})
