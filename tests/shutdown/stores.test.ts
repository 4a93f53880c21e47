import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore } from '../../src/sessions/index.js'
import { gracefulShutdown } from '../../src/shutdown/index.js'
import { openLifecycle } from '../support/lifecycle.js'
import { temporaryDirectory } from '../support/temporary.js'

test('S4: a real session store is flushed and closed with its journal; a fresh one finds what was changed and not saved', async () => {
  const directory = await temporaryDirectory()
  const { lifecycle } = await openLifecycle()
  const journal = await RunJournal.open({ directory: join(directory, 'runs') })
  const sessions = await SessionStore.open({ directory, journal })
  const session = await sessions.create({ id: 's' })
  session.messages.push({ role: 'user', content: 'hello', timestamp: 1 })
  await journal.append('s', 'run', 'token', { text: 'half an ans' })
  const checkpoint = sessions.checkpoint('s')
  checkpoint.activity()

  const report = await gracefulShutdown({
    ...{ lifecycle, sessions, journal, signals: [] },
    interruptTurns: () => journal.append('s', 'run', 'error', { message: 'shut down', type: 'interrupted' }),
  }).shutdown()
  expect(report).toMatchObject({ exitCode: 0, sessions: { flushed: 1, failed: [] } })
  expect(report.steps[0]).toMatchObject({ step: 'checkpointers', status: 'done' })

  const laterJournal = await RunJournal.open({ directory: join(directory, 'runs') })
  const later = await SessionStore.open({ directory, journal: laterJournal })
  expect(await later.get('s')).toMatchObject({ messages: [{ role: 'user', content: 'hello' }] })
  expect(await laterJournal.summary('s', 'run')).toMatchObject({ state: 'interrupted-by-crash', lastSeq: 2 })
  await later.close()
  await laterJournal.close()
})
