import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { RunJournal } from '../src/journal/index.js'
import { SessionStore, type Message, type Session } from '../src/sessions/index.js'
import { median, rates } from './measure.js'
import type { BenchRow } from './row.js'

const TEXT = 'The tide left a line on the stones, and nobody could say when. '.repeat(6)
const message = (at: number): Message => ({
  role: at % 2 === 0 ? 'user' : 'assistant',
  content: `${at}: ${TEXT}`,
  timestamp: 1_700_000_000_000 + at,
})
const transcript = (count: number): Message[] => Array.from({ length: count }, (_, at) => message(at))

export async function benchSessions(): Promise<BenchRow[]> {
  const directory = await mkdtemp(join(tmpdir(), 'tidemark-sessions-bench-'))
  try {
    return [...(await benchTurns(directory)), ...(await benchLoading(directory)), ...(await benchJournal(directory))]
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

/** Microseconds that the timed part took; what it needs before is not timed. */
async function timed(prepare: () => Promise<unknown>, work: () => Promise<unknown>): Promise<number> {
  await prepare()
  const start = performance.now()
  await work()
  return (performance.now() - start) * 1_000
}

/** The contenders take turns, so that a noisy moment hits all of them. */
async function medians<Name extends string>(
  contenders: Record<Name, () => Promise<number>>,
  rounds: number,
): Promise<Record<Name, number>> {
  const names = Object.keys(contenders) as Name[]
  const seen = new Map<Name, number[]>(names.map((name) => [name, []]))
  for (let round = -5; round < rounds; round++) {
    for (const name of names) {
      const took = await contenders[name]()
      if (round >= 0) seen.get(name)?.push(took)
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(seen.get(name) ?? [])])) as Record<Name, number>
}

async function benchTurns(directory: string): Promise<BenchRow[]> {
  const store = await SessionStore.open({ directory: join(directory, 'turns') })
  const complete = async (count: number, fsync: boolean): Promise<() => Promise<number>> => {
    const id = `s${count}-${fsync}`
    const session = await store.create({ id, messages: transcript(count) })
    await store.save(session, { fsync: true })
    return () =>
      timed(
        () => store.beginTurn(id, { text: TEXT, runId: 'r' }),
        () => store.endTurn(id, 'r', [message(1)], { fsync }),
      )
  }
  const rewrite = (fsync: boolean): (() => Promise<number>) => {
    const session: Pick<Session, 'messages'> = { messages: transcript(2_000) }
    return () =>
      timed(
        () => Promise.resolve(session.messages.push(message(0), message(1))),
        () => writeFileAtomic(join(directory, `rewrite-${fsync}.json`), JSON.stringify(session), { fsync }),
      )
  }
  const took = await medians(
    {
      lazy: await complete(2_000, false),
      lazyRewrite: rewrite(false),
      durable: await complete(2_000, true),
      durableRewrite: rewrite(true),
      short: await complete(200, false),
      long: await complete(20_000, false),
    },
    60,
  )
  await store.close()
  const micro = (value: number) => `${Math.round(value)} µs`
  const lazy = took.lazyRewrite / took.lazy
  const durable = took.durableRewrite / took.durable
  const growth = took.long / took.short
  return [
    {
      name: 'completing a turn of 2,000 messages, against a full rewrite',
      value: lazy,
      unit: 'times faster',
      limit: `write-file-atomic ${micro(took.lazyRewrite)}, here ${micro(took.lazy)}`,
      bar: '≥ 30',
      ok: lazy >= 30,
    },
    {
      name: 'the same with fsync',
      value: durable,
      unit: 'times faster',
      limit: `write-file-atomic ${micro(took.durableRewrite)}, here ${micro(took.durable)}`,
      bar: '≥ 10',
      ok: durable >= 10,
    },
    {
      name: 'completing a turn of 20,000 messages, against 200',
      value: growth,
      unit: 'times the cost',
      limit: `${micro(took.short)} at 200, ${micro(took.long)} at 20,000`,
      bar: '≤ 1.5',
      ok: growth <= 1.5,
    },
  ]
}

async function benchLoading(directory: string): Promise<BenchRow[]> {
  const place = join(directory, 'loading')
  const json = join(directory, 'whole.json')
  const writer = await SessionStore.open({ directory: place })
  const session = await writer.create({ id: 's', messages: transcript(2) })
  await writer.save(session)
  for (let at = 2; at < 2_000; at += 2) {
    session.messages.push(message(at), message(at + 1))
    await writer.save(session, { index: false })
  }
  await writeFile(json, JSON.stringify(session))
  await writer.close()
  const store = await SessionStore.open({ directory: place, maxLoaded: 1 })
  const other = await store.create({ id: 'other' })
  await store.save(other)
  const took = await medians(
    {
      // Reading the other one makes room, so that the session comes from its file each time.
      load: () =>
        timed(
          () => store.get('other'),
          () => store.get('s'),
        ),
      parse: () =>
        timed(
          () => Promise.resolve(),
          async () => JSON.parse(await readFile(json, 'utf8')) as unknown,
        ),
    },
    40,
  )
  await store.close()
  const ratio = took.load / took.parse
  return [
    {
      name: 'loading a session of 2,000 messages, against JSON.parse of the same',
      value: ratio,
      unit: 'times the time',
      limit: `JSON.parse ${Math.round(took.parse)} µs, here ${Math.round(took.load)} µs`,
      bar: '≤ 2',
      ok: ratio <= 2,
    },
  ]
}

const READS = 10

async function readTail(journal: RunJournal): Promise<void> {
  let found = 0
  for await (const _ of journal.read('s', 'tail', { after: 19_990 })) found += 1
  if (found !== 10) throw new Error(`expected 10 events, found ${found}`)
}

async function benchJournal(directory: string): Promise<BenchRow[]> {
  const place = join(directory, 'journal')
  const journal = await RunJournal.open({ directory: place })
  const IN_FLIGHT = 1_000
  const { tokens } = await rates({
    tokens: async () => {
      for (let batch = 0; batch < 20; batch++) {
        await Promise.all(
          Array.from({ length: IN_FLIGHT }, () => journal.append('s', 'speed', 'token', { text: 'word ' })),
        )
      }
      return 20 * IN_FLIGHT
    },
  })
  await Promise.all(
    Array.from({ length: 20_000 }, (_, at) => journal.append('s', 'tail', 'token', { text: `word ${at}` })),
  )
  const path = join(place, 's', 'tail.jsonl')
  const tail = await medians(
    {
      // Several at a time: a single one would mostly pay for the garbage of the parsing before it.
      read: async () =>
        (await timed(
          () => Promise.resolve(),
          async () => {
            for (let time = 0; time < READS; time++) await readTail(journal)
          },
        )) / READS,
      parse: () =>
        timed(
          () => Promise.resolve(),
          async () => {
            const lines = (await readFile(path, 'utf8')).trimEnd().split('\n')
            return lines.map((line) => JSON.parse(line) as unknown).slice(-10)
          },
        ),
    },
    40,
  )
  await journal.close()
  const ratio = tail.parse / tail.read
  return [
    {
      name: 'journal tokens, 1,000 in flight',
      value: tokens,
      unit: 'tokens/s',
      bar: '≥ 150,000',
      ok: tokens >= 150_000,
    },
    {
      name: 'reading the last 10 of 20,000 events, against parsing the file',
      value: ratio,
      unit: 'times faster',
      limit: `parsing ${Math.round(tail.parse)} µs, here ${Math.round(tail.read)} µs`,
      bar: '≥ 40',
      ok: ratio >= 40,
    },
  ]
}
