import { expect, test } from 'vitest'
import { join } from 'node:path'
import { temporaryDirectory } from '../support/temporary.js'
import { startChild } from './child.js'

/** Far beyond what the process needs: a test that reaches it fails by what it finds, not by the time. */
const PLENTY_MS = 45_000

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'D6: %s drains 200 dirty sessions behind a 50 ms provider, reports, and the process exits with 0',
  async (signal) => {
    const child = startChild({ dirty: 200, provider: 50, deadlineMs: PLENTY_MS })
    await child.said('ready')
    child.send(signal)
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.report()).toMatchObject({
      log: 'shut down: everything was handed over',
      trigger: { kind: 'signal', signal },
      exitCode: 0,
      drain: { committed: 200, remaining: [], timedOut: false, failed: 0 },
    })
    expect(child.lines.filter(({ event }) => event === 'drain:started')).toHaveLength(1)
    expect(child.lines.at(-1)).toEqual({ event: 'reported' })
    expect(child.text()).not.toContain('secret')
  },
)

test('D3, D6: what cannot be committed by the deadline is reported, and the process exits with 1', async () => {
  const child = startChild({ dirty: 3, provider: 'hang', deadlineMs: 500 })
  await child.said('ready')
  child.send('SIGTERM')
  expect(await child.ended).toEqual({ code: 1, signal: null })
  expect(child.report()).toMatchObject({
    log: expect.stringContaining('3 segments not committed') as unknown,
    exitCode: 1,
    drain: { remainingCount: 3, timedOut: true },
  })
  expect(child.text()).not.toContain('secret')
})

test('D3: with a persistent ledger, what a shutdown left is taken up at the next start', async () => {
  const ledgerPath = join(await temporaryDirectory(), 'ledger.sqlite')
  const first = startChild({ dirty: 3, provider: 'hang', deadlineMs: 500, ledgerPath })
  await first.said('ready')
  first.send('SIGTERM')
  expect(await first.ended).toEqual({ code: 1, signal: null })
  const second = startChild({ dirty: 0, provider: 1, deadlineMs: PLENTY_MS, ledgerPath })
  await second.said('ready')
  second.send('SIGTERM')
  expect(await second.ended).toEqual({ code: 0, signal: null })
  const committed = second.lines.flatMap((line) => ('committed' in line ? [line['committed']] : []))
  expect(committed.sort()).toEqual(['session-0:1-1', 'session-1:1-1', 'session-2:1-1'])
})

test('D6: a second signal exits at once, with 128 and its number', async () => {
  const child = startChild({ dirty: 1, provider: 'hang', deadlineMs: PLENTY_MS })
  await child.said('ready')
  child.send('SIGTERM')
  await child.said('drain:started')
  child.send('SIGINT')
  expect(await child.ended).toEqual({ code: 130, signal: null })
  expect(child.report()).toBeUndefined()
})

test.each(['at once', 'rejecting'] as const)(
  'D6: an uncaught error (%s) drains too; the process exits with 1 and shows where, not what',
  async (throws) => {
    const child = startChild({ dirty: 20, provider: 50, deadlineMs: PLENTY_MS, throws })
    expect(await child.ended).toEqual({ code: 1, signal: null })
    expect(child.report()).toMatchObject({ trigger: { kind: 'error' }, exitCode: 1, drain: { remaining: [] } })
    const logged = child.lines.find(({ log }) => log === 'an error was not caught')
    expect(logged).toMatchObject({ err: 'Error', frames: expect.arrayContaining([expect.any(String)]) as unknown })
    expect(child.text()).not.toContain('secret')
  },
)

test.each([false, true])(
  'D6: errors during the drain do not cut it short (and the handler throws: %s)',
  async (onErrorThrows) => {
    const child = startChild({
      ...{ dirty: 20, provider: 50, deadlineMs: PLENTY_MS, throws: 'while draining', onErrorThrows },
    })
    await child.said('ready')
    child.send('SIGTERM')
    expect(await child.ended).toEqual({ code: 0, signal: null })
    expect(child.report()).toMatchObject({ strayErrors: onErrorThrows ? 4 : 2, exitCode: 0, drain: { remaining: [] } })
    expect(child.text()).not.toContain('secret')
  },
)

test('D6: two signals that arrive together are a first and a second one', async () => {
  const child = startChild({ dirty: 1, provider: 'hang', deadlineMs: PLENTY_MS })
  await child.said('ready')
  child.send('SIGTERM')
  child.send('SIGHUP')
  const { code } = await child.ended
  // The system says which of them came second.
  expect([129, 143]).toContain(code)
  expect(child.report()).toBeUndefined()
})

test('D6: a signal joins a drain that an error began; the next one exits at once', async () => {
  const child = startChild({ dirty: 1, provider: 'hang', deadlineMs: PLENTY_MS, throws: 'at once' })
  await child.said('drain:started')
  child.send('SIGTERM')
  child.send('SIGINT')
  const { code } = await child.ended
  expect([130, 143]).toContain(code)
})

test('D6: a single signal during a drain that an error began changes nothing', async () => {
  const child = startChild({ dirty: 40, provider: 200, deadlineMs: PLENTY_MS, throws: 'at once' })
  await child.said('drain:started')
  child.send('SIGTERM')
  expect(await child.ended).toEqual({ code: 1, signal: null })
  expect(child.report()).toMatchObject({ trigger: { kind: 'error' }, drain: { remaining: [] } })
})

test('signals that were not asked for do what they always do', async () => {
  const child = startChild({ dirty: 1, provider: 50, deadlineMs: PLENTY_MS, signals: ['SIGTERM'] })
  await child.said('ready')
  child.send('SIGHUP')
  expect(await child.ended).toEqual({ code: null, signal: 'SIGHUP' })
})
