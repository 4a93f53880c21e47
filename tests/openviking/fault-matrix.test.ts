import { describe, it } from 'vitest'
import { profiles } from '../../src/testing/openviking-double/profile.js'
import { freshLedger } from '../support/ledgers.js'
import { makeProvider, makeTurns, once, play } from './driver.js'
import { finish, mark, openLifecycle } from './through-lifecycle.js'
import { startDouble, until, type Double } from './wire.js'

/** Opened when everything else is over: the request then lands as late as it can. */
type Gate = ReturnType<Double['controls']['gate']>
type Op = Parameters<Double['controls']['dropRequest']>[0]

const html = { status: 502, body: '<html><body>Bad gateway</body></html>' }
const error = (status: number, code: string, details?: object) => ({
  status,
  body: { status: 'error', error: { code, message: `${code} for the test`, ...(details && { details }) } },
})
const busy = error(409, 'CONFLICT', { conflict_type: 'path_busy', retryable: true })

/** Each plans one fault for the next request of a kind, and may answer something to do after the attempt failed. */
const faults: Record<string, (double: Double, op: Op, late: Gate[]) => void | (() => void)> = {
  'drop before': ({ controls }, op) => controls.dropRequest(op),
  'drop after': ({ controls }, op) => controls.dropResponse(op),
  'delay past the limit, applied when the next attempt begins': ({ controls }, op) => {
    const gate = controls.gate(op, 'before')
    return () => gate.release()
  },
  'delay past the limit, applied at the very end': ({ controls }, op, late) =>
    void late.push(controls.gate(op, 'before')),
  'applied, answer delayed past the limit': ({ controls }, op, late) => void late.push(controls.gate(op, 'after')),
  '409 busy': ({ controls }, op) => controls.answerNext(op, busy),
  '429': ({ controls }, op) => controls.answerNext(op, error(429, 'RESOURCE_EXHAUSTED')),
  '500 before': ({ controls }, op) => controls.failNext(op, op === 'commit' ? 'before-rewrite' : 'before'),
  '500 after': ({ controls }, op) => controls.failNext(op, op === 'commit' ? 'after-rewrite' : 'after'),
  '503 before': ({ controls }, op) => controls.answerNext(op, error(503, 'UNAVAILABLE')),
  '503 after': ({ controls }, op) => controls.answerNext(op, error(503, 'UNAVAILABLE'), 'after'),
  'malformed JSON, not applied': ({ controls }, op) => controls.answerNext(op, { status: 200, body: '{"status": "o' }),
  'malformed JSON, applied': ({ controls }, op) =>
    controls.answerNext(op, { status: 200, body: '{"status": "o' }, 'after'),
  'HTML of a gateway, not applied': ({ controls }, op) => controls.answerNext(op, html),
  'HTML of a gateway, applied': ({ controls }, op) => controls.answerNext(op, html, 'after'),
  redirect: ({ controls }, op) =>
    controls.answerNext(op, { status: 302, body: '', headers: { location: 'http://elsewhere.invalid/login' } }),
  'server restarted gracefully after it was applied': ({ controls }, op) => restartAt(controls, op, 'after', true),
  'server killed after it was applied': ({ controls }, op) => restartAt(controls, op, 'after', false),
  'server killed before it was applied': ({ controls }, op) => restartAt(controls, op, 'before', false),
  'server killed in Phase 1 before the rewrite': ({ controls }, op) =>
    op === 'commit' ? controls.failNext(op, 'killed-before-rewrite') : controls.dropRequest(op),
  'server killed in Phase 1 after the rewrite': ({ controls }, op) =>
    op === 'commit' ? controls.failNext(op, 'killed-after-rewrite') : controls.dropResponse(op),
}

function restartAt(controls: Double['controls'], op: Op, at: 'before' | 'after', graceful: boolean): void {
  const gate = controls.gate(op, at)
  void gate.reached.then(async () => {
    await controls.restart({ graceful })
    gate.release()
  })
}

/** What makes the adapter send a request of that kind at all. */
const scenes: Record<string, { op: Op; provoke?: (double: Double) => void | (() => void) }> = {
  'session status': { op: 'get' },
  create: { op: 'create' },
  add: { op: 'batch' },
  commit: { op: 'commit' },
  'task status': { op: 'task' },
  'task list': { op: 'tasks', provoke: ({ controls }) => controls.dropResponse('commit') },
  archive: { op: 'archive', provoke: ({ controls }) => controls.answerNext('task', taskGone) },
  context: { op: 'context', provoke: ({ controls }) => pendingAndForgotten(controls) },
}

const taskGone = error(404, 'NOT_FOUND', { type: 'task', resource: 'x' })

function pendingAndForgotten(controls: Double['controls']): () => void {
  controls.holdPhase2()
  controls.answerNext('task', taskGone)
  return () => controls.releasePhase2()
}

describe.concurrent('fault matrix, new server, through the coordinator', () => {
  for (const [scene, { op, provoke }] of Object.entries(scenes)) {
    for (const [fault, plan] of Object.entries(faults)) {
      it(`${scene} × ${fault}: every turn is extracted exactly once`, async ({ expect, onTestFinished: atEnd }) => {
        const double = await startDouble({ authMode: 'trusted' }, atEnd)
        const identity = { apiKey: double.controls.keys.root, account: 'acme', user: 'ada' }
        const provider = makeProvider(double, { ...identity, readTimeoutMs: 250, writeTimeoutMs: 250 }, atEnd)
        // The client lives on here, so memory will do; TIDEMARK_TEST_LEDGER=sqlite takes the file instead.
        const lifecycle = await openLifecycle({ ledger: freshLedger() }, atEnd)
        const turns = makeTurns(3)
        const late: Gate[] = []
        const goOn = provoke?.(double)
        const next = plan(double, op, late)
        lifecycle.on('commit:failed', () => next?.())
        await mark(lifecycle, provider, turns)
        lifecycle.switchSession('s', 'next')
        await until('the fault has happened', () => double.controls.pendingFaults() === 0)
        goOn?.()
        const snapshot = await finish(lifecycle, 's')
        next?.()
        await openAll(late)
        await quiet(double)
        expect(snapshot).toMatchObject({ watermark: 3, segments: [] })
        expect(double.stats.extracted).toEqual(once(turns))
      })
    }
  }
})

/** Old servers: what they can be asked decides what can be proved. Parked or unsettled is reported; twice never is. */
describe.concurrent('fault matrix, old servers', () => {
  for (const profile of ['0.4.6', '0.3.4', '0.2.8'] as const) {
    for (const scene of ['session status', 'create', 'add', 'commit', 'task status']) {
      for (const [fault, plan] of Object.entries(faults)) {
        it(`${profile}: ${scene} × ${fault}: once, or reported`, async ({ expect, onTestFinished: atEnd }) => {
          const double = await startDouble({ profile }, atEnd)
          const provider = makeProvider(double, { readTimeoutMs: 250, writeTimeoutMs: 250 }, atEnd)
          const turns = makeTurns(2)
          const { op } = scenes[scene]!
          const late: Gate[] = []
          const next = plan(double, op === 'batch' && !profiles[profile].batch ? 'add' : op, late)
          const played = await play(provider.agent('s'), turns, { between: () => next?.() })
          await openAll(late)
          expect(double.controls.pendingFaults(), 'the planned fault happened').toBe(0)
          await quiet(double)
          const counts = Object.values(double.stats.extracted)
          expect(counts.every((count) => count === 1)).toBe(true)
          const lossy = /killed|restarted/.test(fault) && /commit|task/.test(scene)
          if (!lossy) expect(played.outcome, String(played.errors.at(-1))).toBe('committed')
          if (played.outcome === 'committed') expect(double.stats.extracted).toEqual(once(turns))
          else expect(['unsettled', 'parked']).toContain(played.outcome)
        })
      }
    }
  }
})

/** The last requests land now. */
async function openAll(gates: readonly Gate[]): Promise<void> {
  for (const gate of gates) {
    gate.release()
    await gate.passed
  }
}

/** Nothing is under way on the server any more, except what a restart left running for ever. */
async function quiet(double: Double): Promise<void> {
  await until('no task waits', () => double.controls.tasks().every((task) => task.status !== 'pending'))
}
