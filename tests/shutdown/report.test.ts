import { expect, test } from 'vitest'
import type { DrainReport } from '../../src/index.js'
import type { ShutdownReport, StepReport } from '../../src/shutdown/index.js'
import { exitCodeOf, logReport } from '../../src/shutdown/report.js'
import { recordingLogger } from '../../src/testing/index.js'

const DRAINED: DrainReport = {
  ...{ committed: 3, accepted: 1, failed: 0, parked: 0, handedOver: 0, remaining: [], timedOut: false, durationMs: 5 },
}
const GOOD: Omit<ShutdownReport, 'exitCode'> = {
  trigger: { kind: 'signal', signal: 'SIGTERM' },
  steps: [],
  drain: DRAINED,
  strayErrors: 0,
  durationMs: 7,
}
const rest = { sessionId: 's', from: 1, to: 2 }
const ended = (step: StepReport['step'], status: StepReport['status']): StepReport => ({ step, status, durationMs: 1 })

test.each<[string, 0 | 1, Partial<ShutdownReport>]>([
  ['everything committed or accepted', 0, {}],
  ['everything committed, by a call', 0, { trigger: { kind: 'call' } }],
  ['everything committed, after an uncaught error', 1, { trigger: { kind: 'error' } }],
  ['everything committed, with errors meanwhile', 0, { strayErrors: 2 }],
  ['work left in flight', 1, { drain: { ...DRAINED, remaining: [{ ...rest, reason: 'in-flight' }] } }],
  ['work left parked', 1, { drain: { ...DRAINED, remaining: [{ ...rest, reason: 'parked' }] } }],
  ['a session that could not be saved', 1, { sessions: { flushed: 2, failed: ['s'] } }],
  ['sessions that were saved', 0, { sessions: { flushed: 2, failed: [] } }],
  ['a turn cut short and recorded', 0, { steps: [ended('turns', 'left'), ended('interrupt', 'done')] }],
  ['a turn cut short and not recorded', 1, { steps: [ended('turns', 'left'), ended('interrupt', 'skipped')] }],
  ['a turn whose recording took too long', 1, { steps: [ended('turns', 'left'), ended('interrupt', 'left')] }],
  ['a connection cut', 0, { steps: [ended('connections', 'left')] }],
  ['a server that failed to close', 1, { steps: [ended('connections', 'failed')] }],
  ['a flush that did not end', 1, { steps: [ended('flush', 'left')] }],
  ['a ledger that failed to close', 1, { steps: [ended('lifecycle', 'failed')] }],
  ['steps done and skipped', 0, { steps: [ended('flush', 'done'), ended('pool', 'skipped')] }],
])('D6: %s: exit code %i', (_name, code, facts) => {
  expect(exitCodeOf({ ...GOOD, ...facts })).toBe(code)
})

test('D6: without the report of a drain nothing is known to be handed over: exit code 1', () => {
  const { drain: _drain, ...facts } = GOOD
  expect(exitCodeOf(facts)).toBe(1)
})

test('D3: the log says how much is left and shows the first of it', () => {
  const logger = recordingLogger()
  const remaining = Array.from({ length: 300 }, (_, index) => ({
    ...{ sessionId: `session-${index}`, from: 1, to: 1, reason: 'failing' as const },
  }))
  logReport(logger, { ...GOOD, exitCode: 1, drain: { ...DRAINED, remaining } })
  expect(logger.lines).toMatchObject([{ level: 'error', fields: { drain: { remainingCount: 300 } } }])
  expect(logger.lines[0]?.message).toContain('300 segments not committed')
  expect(logger.text()).toContain('session-19')
  expect(logger.text()).not.toContain('session-20')
})

test('a good end is logged as one, and a bad one without work left says where to look', () => {
  const logger = recordingLogger()
  logReport(logger, { ...GOOD, exitCode: 0 })
  logReport(logger, { ...GOOD, exitCode: 1, steps: [ended('journal', 'failed')] })
  expect(logger.lines.map(({ level }) => level)).toEqual(['info', 'error'])
  expect(logger.lines[1]?.message).toContain('see steps')
})
