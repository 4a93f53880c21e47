/**
 * Writes to a store or a journal until it is killed, and prints a line for each thing that was acknowledged.
 * Arguments: directory, what to do.
 */
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore } from '../../src/sessions/index.js'

const [directory, mode] = process.argv.slice(2)
if (directory === undefined || mode === undefined) throw new Error('expected: directory mode')
const print = (line: string) => void process.stdout.write(`${line}\n`)
const pause = () => new Promise((resolve) => setImmediate(resolve))

/** Saves one message after the other; `ack n` says that n messages are saved as asked for. */
async function saveMessages(fsync: boolean): Promise<void> {
  const store = await SessionStore.open({ directory: `${directory}/store` })
  const session = await store.getOrCreate('s')
  for (let n = session.messages.length + 1; ; n++) {
    session.messages.push({ role: 'user', content: `message ${n} ${'x'.repeat(n % 500)}`, timestamp: n })
    await store.save(session, { fsync })
    print(`ack ${n}`)
    await pause()
  }
}

/** Twenty durable messages, then unsynced saves that add to, change and cut what comes behind, with rewrites. */
async function saveLazily(): Promise<void> {
  const store = await SessionStore.open({ directory: `${directory}/store` })
  const session = await store.create({ id: 's' })
  for (let n = 1; n <= 20; n++) session.messages.push({ role: 'user', content: `message ${n}`, timestamp: n })
  await store.save(session, { fsync: true })
  for (let n = 21; ; n++) {
    session.messages.push({ role: 'assistant', content: `lazy ${n} ${'y'.repeat(2_000)}`, timestamp: n })
    if (n % 5 === 0) session.messages.length = 20
    await store.save(session, { truncate: true })
    print(`ack ${n}`)
    await pause()
  }
}

/** One run after the other, three tokens each; `ack n` says that the end of run n was acknowledged. */
async function journalRuns(): Promise<void> {
  const journal = await RunJournal.open({ directory: `${directory}/journal` })
  for (let n = 1; ; n++) {
    for (const text of ['a', 'b', 'c']) await journal.append('s', `r${n}`, 'token', { text })
    await journal.append('s', `r${n}`, 'done', {})
    print(`ack ${n}`)
    await pause()
  }
}

/** Tokens only, none of them durable. */
async function journalTokens(): Promise<void> {
  const journal = await RunJournal.open({ directory: `${directory}/journal` })
  for (let n = 1; ; n++) {
    await journal.append('s', 'r', 'token', { text: `${n} ` })
    print(`ack ${n}`)
    await pause()
  }
}

/** A turn whose answer is streamed and never ends. */
async function streamAnswer(): Promise<void> {
  const journal = await RunJournal.open({ directory: `${directory}/journal` })
  const store = await SessionStore.open({ directory: `${directory}/store`, journal })
  await store.create({ id: 's', title: 'stream' })
  await store.beginTurn('s', { text: 'How is the weather?', runId: 'r', attachments: [{ name: 'map.png' }] })
  const say = async (text: string) => {
    for (const word of text.split(/(?<= )/)) await journal.append('s', 'r', 'token', { text: word })
  }
  await say('Let me look at the sky. ')
  await journal.append('s', 'r', 'tool', { name: 'look', preview: 'the sky', args: { where: 'up' } })
  await journal.append('s', 'r', 'tool_complete', { name: 'look', durationMs: 12 })
  await say('It is ')
  await journal.append('s', 'r', 'tool', { name: 'measure' })
  for (let n = 1; ; n++) {
    await say(`wet${n} `)
    print(`ack ${n}`)
    await pause()
  }
}

const modes: Record<string, () => Promise<void>> = {
  durable: () => saveMessages(true),
  unsynced: () => saveMessages(false),
  lazy: saveLazily,
  runs: journalRuns,
  tokens: journalTokens,
  stream: streamAnswer,
}
await modes[mode]?.()
