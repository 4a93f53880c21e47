import fc from 'fast-check'
import { type JournalEvent, RunJournal } from 'tidemark/journal'
import { describe, expect, onTestFinished, test } from 'vitest'
import { Inbox } from '../../examples/gateway/inbox.js'
import { followRun, LiveRun } from '../../examples/gateway/turns/live-runs.js'
import { temporaryDirectory } from '../support/temporary.js'

async function openRun(runId: string) {
  const journal = await RunJournal.open({ directory: await temporaryDirectory() })
  onTestFinished(() => journal.close())
  const live = new LiveRun()
  const say = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      const payload = { text: 'x' }
      const { seq } = await journal.append('chat', runId, 'token', payload)
      live.publish({ seq, event: 'token', payload, at: 0 })
    }
  }
  const follow = (after = 0, hangUp = new AbortController()): AsyncGenerator<JournalEvent, void> => {
    onTestFinished(() => hangUp.abort())
    return followRun(journal, { sessionId: 'chat', runId, live }, { after, signal: hangUp.signal })
  }
  return { live, say, follow }
}

const numbers = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, at) => first + at)

describe('following a run', () => {
  test('a reader that falls far behind gets the rest from the journal, each event once', async () => {
    const { live, say, follow } = await openRun('long')
    await say(1)
    const reader = follow()
    const seen = [((await reader.next()).value ?? undefined)?.seq]
    await say(2_500)
    live.end()
    for await (const { seq } of reader) seen.push(seq)
    expect(seen).toEqual(numbers(2_501))
  })

  test('a reader that hangs up is let go of, also while it waits', async () => {
    const { say, follow } = await openRun('left')
    const hangUp = new AbortController()
    await say(1)
    const reader = follow(0, hangUp)
    await reader.next()
    const waiting = reader.next()
    hangUp.abort()
    expect(await waiting).toEqual({ done: true, value: undefined })
  })

  test('whenever readers come, with whatever cursor, and however slowly they read: each event behind it once, in order', async () => {
    let runs = 0
    const steps = fc.array(
      fc.oneof(
        fc.nat(5).map((say) => ({ say })),
        fc.nat(20).map((come) => ({ come })),
        fc.nat(3).map((read) => ({ read })),
      ),
      { maxLength: 25 },
    )
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const { live, say, follow } = await openRun(`run${runs++}`)
        const readers: {
          after: number
          seen: number[]
          events: ReturnType<typeof follow>
          pending?: Promise<unknown>
        }[] = []
        let said = 0
        for (const step of plan) {
          if ('say' in step) {
            await say(step.say)
            said += step.say
          } else if ('come' in step) {
            const after = Math.min(step.come, said)
            readers.push({ after, seen: [], events: follow(after) })
          } else {
            // Reads what is there and never waits for what is not.
            for (const reader of readers) {
              for (let left = step.read; left > 0 && reader.after + reader.seen.length < said; left--) {
                const { value } = await reader.events.next()
                if (value !== undefined) reader.seen.push(value.seq)
              }
            }
          }
        }
        live.end()
        for (const { after, seen, events } of readers) {
          for await (const { seq } of events) seen.push(seq)
          expect(seen).toEqual(numbers(said, after + 1))
        }
      }),
      { numRuns: 40 },
    )
  })
})

describe('an inbox', () => {
  const open = (limit: number, signal = new AbortController().signal) => new Inbox<number>({ limit, signal })

  test('hands out what came, in order, and then waits', async () => {
    const inbox = open(5)
    inbox.put(1)
    inbox.put(2)
    expect(await inbox.take()).toEqual([1, 2])
    const next = inbox.take()
    inbox.put(3)
    expect(await next).toEqual([3])
  })

  test('says once that more came than fits, and goes on', async () => {
    const inbox = open(2)
    for (const event of [1, 2, 3, 4]) inbox.put(event)
    expect(await inbox.take()).toBe('behind')
    inbox.put(5)
    expect(await inbox.take()).toEqual([5])
  })

  test('hands out the rest before it is over', async () => {
    const inbox = open(5)
    inbox.put(1)
    inbox.end()
    expect(await inbox.take()).toEqual([1])
    expect(await inbox.take()).toBeUndefined()
  })

  test('is over at once under a signal that was aborted before', async () => {
    expect(await open(5, AbortSignal.abort()).take()).toBeUndefined()
  })
})
