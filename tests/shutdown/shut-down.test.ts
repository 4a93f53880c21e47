import { afterEach, expect, test } from 'vitest'
import { TidemarkError } from '../../src/index.js'
import { gracefulShutdown, type ShutdownHandle, type ShutdownOptions } from '../../src/shutdown/index.js'
import { type ManualClock, recordingLogger, scriptedAgent, steps } from '../../src/testing/index.js'
import { openLifecycle, settle } from '../support/lifecycle.js'

const installed: ShutdownHandle[] = []
afterEach(() => {
  for (const handle of installed.splice(0)) handle.uninstall()
})

function install(options: ShutdownOptions): ShutdownHandle {
  const handle = gracefulShutdown(options)
  installed.push(handle)
  return handle
}

interface Scene {
  readonly calls: string[]
  readonly clock: ManualClock
  readonly options: ShutdownOptions
  readonly logger: ReturnType<typeof recordingLogger>
}

/** Everything that can be shut down; each part says when it is called. */
async function scene(changes: Partial<ShutdownOptions> = {}): Promise<Scene> {
  const { lifecycle, clock } = await openLifecycle()
  const calls: string[] = []
  const logger = recordingLogger()
  const call =
    <T>(name: string, answer: T) =>
    (): Promise<T> => {
      calls.push(name)
      return Promise.resolve(answer)
    }
  const options: ShutdownOptions = {
    lifecycle: {
      drain: (given) => {
        calls.push('drain')
        return lifecycle.drain(given)
      },
      close: () => {
        calls.push('close the lifecycle')
        return lifecycle.close()
      },
    },
    sessions: { flushAll: call('flush', { flushed: 4, failed: [] }), close: call('close the sessions', undefined) },
    journal: { close: call('close the journal', undefined) },
    pool: { close: call('close the pool', undefined) },
    servers: [call('stop accepting', undefined)],
    stopCheckpointers: call('stop the checkpointers', undefined),
    waitForTurns: call('wait for turns', undefined),
    interruptTurns: call('interrupt turns', undefined),
    onReport: call('report', undefined),
    ...{ deadlineMs: 10_000, clock, logger, signals: [], catchErrors: false, ...changes },
  }
  return { calls, clock, options, logger }
}

const hang = (): Promise<never> => new Promise(() => undefined)

test('everything is closed in one order, what is durable first', async () => {
  const { calls, options, clock } = await scene()
  const report = await install(options).shutdown()
  expect(clock.pending).toBe(0)
  expect(calls).toEqual([
    'stop accepting',
    'stop the checkpointers',
    'wait for turns',
    'interrupt turns',
    'flush',
    'drain',
    'close the pool',
    'close the journal',
    'close the sessions',
    'close the lifecycle',
    'report',
  ])
  expect(report).toMatchObject({ exitCode: 0, trigger: { kind: 'call' }, sessions: { flushed: 4, failed: [] } })
  expect(report.steps.map(({ status }) => status)).toEqual(report.steps.map(() => 'done'))
})

test('only the lifecycle is needed; steps without a part are skipped', async () => {
  const { lifecycle } = await openLifecycle()
  const agent = scriptedAgent()
  await lifecycle.markTurnCompleted('s', { agent })
  const report = await install({ lifecycle, signals: [] }).shutdown()
  expect(report).toMatchObject({ exitCode: 0, drain: { committed: 1, remaining: [] } })
  expect(report.steps.filter(({ status }) => status === 'done').map(({ step }) => step)).toEqual(['drain', 'lifecycle'])
  await expect(lifecycle.markTurnCompleted('s')).rejects.toMatchObject({ code: 'CLOSED' })
})

test('a step that fails is reported by name and code, and the others run all the same', async () => {
  const failing = (): Promise<never> => Promise.reject(new TidemarkError('WRITE_FAILED', 'the disk is full'))
  const throwing = (): never => {
    throw new RangeError('what a user said')
  }
  const { calls, options, logger } = await scene({
    ...{ stopCheckpointers: throwing, journal: { close: failing }, pool: { close: failing }, onReport: throwing },
  })
  const report = await install(options).shutdown()
  expect(report.exitCode).toBe(1)
  expect(report.steps.filter(({ status }) => status === 'failed')).toMatchObject([
    { step: 'checkpointers', error: 'RangeError' },
    { step: 'pool', error: 'WRITE_FAILED: the disk is full' },
    { step: 'journal', error: 'WRITE_FAILED: the disk is full' },
  ])
  expect(calls).toContain('close the lifecycle')
  expect(logger.text()).not.toContain('what a user said')
})

test('D3: one deadline for everything: a part that hangs costs its own share only', async () => {
  const seen: Record<string, number> = {}
  const { clock, options, logger } = await scene()
  const startedAt = clock.now()
  const hangAs = (name: string) => (): Promise<never> => {
    seen[name] = clock.now() - startedAt
    return hang()
  }
  const handle = install({
    ...options,
    stopCheckpointers: hangAs('checkpointers'),
    waitForTurns: hangAs('turns'),
    interruptTurns: hangAs('interrupt'),
    servers: [hangAs('servers')],
    sessions: { flushAll: hangAs('flush'), close: hangAs('sessions') },
    lifecycle: { drain: hangAs('drain'), close: hangAs('lifecycle') },
    pool: { close: hangAs('pool') },
    journal: { close: hangAs('journal') },
    onReport: hangAs('report'),
  })
  let isDone = false
  const ended = handle.shutdown().then((report) => {
    isDone = true
    return report
  })
  await clock.advance(9_999)
  expect(isDone).toBe(false)
  await clock.advance(1)
  const report = await ended
  expect(seen).toEqual({
    ...{ servers: 0, checkpointers: 0, turns: 1_000, interrupt: 4_000, flush: 5_000, drain: 6_000 },
    ...{ pool: 9_000, journal: 9_400, sessions: 9_500, lifecycle: 9_700, report: 9_900 },
  })
  expect(report.exitCode).toBe(1)
  expect(new Set(report.steps.map(({ status }) => status))).toEqual(new Set(['left']))
  expect(logger.text()).toContain('did not end within its share')
})

test('D3: a drain that cannot finish returns its report within its share', async () => {
  const { lifecycle, clock } = await openLifecycle({ abandonGraceMs: 100 })
  const agent = scriptedAgent({ otherwise: steps.hang() })
  await lifecycle.markTurnCompleted('s', { agent })
  const ended = install({ lifecycle, clock, deadlineMs: 10_000, signals: [] }).shutdown()
  await clock.advance(10_000)
  const report = await ended
  expect(report).toMatchObject({ exitCode: 1, drain: { remaining: [{ sessionId: 's', reason: 'in-flight' }] } })
  expect(report.steps.find(({ step }) => step === 'drain')?.status).toBe('done')
})

test('a step that ends after its time is heard of if it fails, and its signal told it in time', async () => {
  let fail: (error: Error) => void = () => undefined
  let told = false
  const { clock, options, logger } = await scene({
    waitForTurns: ({ signal }) => {
      signal.addEventListener('abort', () => (told = true))
      return new Promise((_resolve, reject) => {
        fail = reject
      })
    },
  })
  const ended = install(options).shutdown()
  await clock.advance(4_000)
  expect(told).toBe(true)
  expect((await ended).exitCode).toBe(0)
  fail(new RangeError('too late'))
  await settle()
  expect(logger.lines.at(-1)).toMatchObject({ level: 'warn', fields: { step: 'turns', err: 'RangeError' } })
})

test('a shutdown runs once: who asks again gets the same report', async () => {
  const { calls, options } = await scene()
  const handle = install(options)
  expect(handle.signal.aborted).toBe(false)
  const [one, other] = [handle.shutdown(), handle.shutdown()]
  expect(handle.signal.aborted).toBe(true)
  expect(await one).toBe(await other)
  expect(calls.filter((call) => call === 'drain')).toHaveLength(1)
})

test('uninstalling, and the end of a shutdown that was called for, leave no listener on the process', async () => {
  const events = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2', 'uncaughtException', 'unhandledRejection', 'beforeExit']
  const listeners = (): number[] => events.map((event) => process.listenerCount(event))
  const before = listeners()
  const { options } = await scene({ signals: ['SIGTERM', 'SIGINT', 'SIGHUP'], catchErrors: true })
  const first = install(options)
  expect(listeners()).not.toEqual(before)
  first.uninstall()
  expect(listeners()).toEqual(before)
  await install(options).shutdown()
  expect(listeners()).toEqual(before)
})

test.each<[string, object]>([
  ['lifecycle must have the method drain', { lifecycle: {} }],
  ['sessions must have the method flushAll', { sessions: { close: hang } }],
  ['pool must have the method close', { pool: {} }],
  ['servers must have the method close', { servers: [{}] }],
  ['waitForTurns must be a function', { waitForTurns: true }],
  ['deadlineMs must be a number of milliseconds', { deadlineMs: -1 }],
  ['signals must be some of', { signals: ['SIGKILL'] }],
  ["no option 'deadline'", { deadline: 5 }],
])('nonsense is refused before anything is installed: %s', async (said, nonsense) => {
  const { options } = await scene()
  const before = process.listenerCount('SIGTERM')
  const bad = { ...options, signals: ['SIGTERM'], ...nonsense } as ShutdownOptions
  expect(() => gracefulShutdown(bad)).toThrow(TypeError)
  expect(() => gracefulShutdown(bad)).toThrow(said)
  expect(process.listenerCount('SIGTERM')).toBe(before)
})
