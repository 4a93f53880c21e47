import fc from 'fast-check'
import { expect, test } from 'vitest'
import { openLogFile, type OpenLogFile } from '../../src/log/files.js'
import { SessionStore, type Session } from '../../src/sessions/index.js'
import { readSession } from '../../src/sessions/session-file.js'
import { turnsOfTheLoop } from '../support/gate.js'
import { manualTime } from '../support/manual-time.js'
import { temporaryDirectory } from '../support/temporary.js'
import { assistant, user } from './support.js'

const OPERATIONS = ['undo', 'cancel', 'rotate', 'end', 'update'] as const
type Operation = (typeof OPERATIONS)[number]

interface State {
  readonly contents: readonly string[]
  readonly title: string
  readonly runs: boolean
}

const START: State = { contents: ['q0', 'a0'], title: '', runs: true }

/** What each operation does to the live session when it has it for itself. */
function applied(state: State, operation: Operation): State {
  const { contents, runs } = state
  switch (operation) {
    case 'update':
      return { ...state, contents: [...contents, 'q2', 'a2'], title: 'whole' }
    case 'undo':
      return {
        ...state,
        contents: contents.slice(
          0,
          contents.findLastIndex((text) => text.startsWith('q')),
        ),
      }
    case 'cancel':
      return runs ? { ...state, contents: [...contents, 'q1'], runs: false } : state
    case 'end':
      return runs ? { ...state, contents: [...contents, 'q1', 'a1'], runs: false } : state
    case 'rotate':
      return state
    default:
      return operation satisfies never
  }
}

/** Every order the lock could have given; what comes behind a rotation may have met the snapshot instead. */
function* orders(left: readonly Operation[], states: readonly State[], rotated: boolean): Generator<readonly State[]> {
  if (left.length === 0) yield states
  for (const operation of left) {
    const rest = left.filter((other) => other !== operation)
    const state = states.at(-1)!
    yield* orders(rest, [...states, applied(state, operation)], rotated || operation === 'rotate')
    if (rotated && (operation === 'undo' || operation === 'update')) yield* orders(rest, states, true)
  }
}

const stateOf = ({ messages, title, activeRunId }: Session): State => ({
  contents: messages.map(({ content }) => content),
  title,
  runs: activeRunId !== null,
})

function isSubsequence(seen: readonly string[], states: readonly string[]): boolean {
  let at = 0
  for (const state of states) if (seen[at] === state) at += 1
  return at === seen.length
}

test('K1, T3: whatever races a checkpoint, every snapshot on disk is a state that existed under the lock', async () => {
  const numRuns = Number(process.env['TIDEMARK_SCHEDULES'] ?? 40)
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.shuffledSubarray([...OPERATIONS], { minLength: 1 }),
      async (scheduler, chosen) => {
        const directory = await temporaryDirectory()
        const seen: string[] = []
        const disk = { busy: 0 }
        /** As a process that starts now would read it: the live session is at the new id as soon as that is there. */
        const look = async () => {
          const read =
            (await readSession('new', `${directory}/sessions/new.jsonl`)) ??
            (await readSession('old', `${directory}/sessions/old.jsonl`))
          expect(read?.damagedLine).toBeUndefined()
          const state = read === undefined ? undefined : JSON.stringify(stateOf(read.session))
          if (state !== undefined && state !== seen.at(-1)) seen.push(state)
        }
        const openFile: OpenLogFile = async (path, flags) => {
          const file = await openLogFile(path, flags)
          return {
            write: async (bytes, from, length, position) => {
              await scheduler.schedule(Promise.resolve(), 'write')
              await look()
              const written = await file.write(bytes, from, length, position)
              await look()
              return written
            },
            datasync: () => scheduler.schedule(Promise.resolve(), 'sync'),
            truncate: (size) => file.truncate(size),
            close: () => file.close(),
          }
        }
        const clock = manualTime()
        const store = await SessionStore.open({ directory, clock, openFile })
        /** Lets the scheduler pick what happens next, until this is done. */
        const settle = async <T>(work: Promise<T>): Promise<T> => {
          const progress = { done: false }
          const finished = work.finally(() => (progress.done = true))
          while (!progress.done) {
            // The disk is real and slow: without waiting for it, all steps would be taken before its first answer.
            await turnsOfTheLoop()
            if (disk.busy === 0 && scheduler.count() > 0) await scheduler.waitNext(1)
          }
          return finished
        }
        const session = await store.create({ id: 'old', messages: [user('q0'), assistant('a0')] })
        await settle(store.beginTurn('old', { text: 'q1', runId: 'r1' }))
        const checkpoint = store.checkpoint('old', { everyMs: 1 })
        const perform: Record<Operation, () => Promise<unknown>> = {
          undo: () => store.undoLast(session.id),
          cancel: () => store.cancelRun(session.id, 'r1'),
          end: () => store.endTurn(session.id, 'r1', [assistant('a1')]),
          rotate: () => store.rotate('old', 'new'),
          update: () =>
            store.update(session.id, async (live) => {
              live.title = 'half'
              await scheduler.schedule(Promise.resolve(), 'inside the update')
              live.messages.push(user('q2'), assistant('a2'))
              live.title = 'whole'
            }),
        }
        const steps = [...chosen, 'step', 'step', 'step'] as const
        await settle(
          Promise.all(
            steps.map(async (step) => {
              await scheduler.schedule(Promise.resolve(), step)
              checkpoint.activity()
              clock.advance(1)
              if (step !== 'step') await perform[step]()
            }),
          ),
        )
        await settle(checkpoint.stop())
        await look()
        await settle(store.close())
        expect(seen.at(-1)).toBe(JSON.stringify(stateOf(session)))
        const possible = [...orders(chosen, [START], false)].map((states) =>
          states.map((state) => JSON.stringify(state)),
        )
        expect(
          possible.some((states) => isSubsequence(seen, states)),
          seen.join('\n'),
        ).toBe(true)
      },
    ),
    { numRuns },
  )
})
