import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { RunJournal } from '../../src/journal/index.js'
import { SessionStore, type Message, type SessionStoreOptions } from '../../src/sessions/index.js'
import { manualTime, type ManualTime } from '../support/manual-time.js'
import { recordingLogger } from '../../src/testing/index.js'
import { temporaryDirectory } from '../support/temporary.js'

export const user = (content: string, timestamp = 1): Message => ({ role: 'user', content, timestamp })
export const assistant = (content: string, timestamp = 1): Message => ({ role: 'assistant', content, timestamp })

export type TestOptions = Partial<Omit<SessionStoreOptions, 'clock'>> & { clock?: ManualTime }

/** A store on a directory of its own, with time held still; closed after the test. */
export async function openStore(options: TestOptions = {}) {
  const directory = options.directory ?? (await temporaryDirectory())
  const clock = options.clock ?? manualTime()
  const logger = recordingLogger()
  const store = await SessionStore.open({ logger, ...options, clock, directory })
  onTestFinished(() => store.close())
  return {
    store,
    directory,
    clock,
    logger,
    fileOf: (name: string) => join(directory, 'sessions', `${name}.jsonl`),
    /** A new process on the same directory, with a cold cache. */
    reopen: async (more: TestOptions = {}) => {
      await store.close()
      return openStore({ ...options, clock, ...more, directory })
    },
  }
}

export async function openJournaledStore(options: TestOptions = {}) {
  const journalDirectory = await temporaryDirectory()
  const journal = await RunJournal.open({ directory: journalDirectory })
  onTestFinished(() => journal.close())
  return { journal, journalDirectory, ...(await openStore({ journal, ...options })) }
}
