import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { recordingLogger } from '../../src/testing/index.js'
import type { EventName } from '../../src/index.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { makeProvider, makeTurns, once } from './driver.js'
import { finish, mark, openLifecycle } from './through-lifecycle.js'
import { startDouble, taskEnds, until } from './wire.js'

describe('OpenViking behind the coordinator', () => {
  it('accepted is not extracted: the watermark waits for the completed task, and so does the text', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle()
    await mark(lifecycle, provider, makeTurns(2))
    expect(await lifecycle.commit('s')).toMatchObject({ status: 'accepted', from: 1, to: 2 })
    expect(await lifecycle.inspect('s')).toMatchObject({ watermark: 0, segments: [{ state: 'accepted' }] })
    const { id } = double.controls.tasks()[0]!
    await taskEnds(double, id, 'running')
    double.controls.releasePhase2(id)
    expect(await finish(lifecycle, 's')).toMatchObject({ watermark: 2, segments: [] })
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it('a failed extraction is repaired behind the scenes: new key, fresh session, learned once', async () => {
    const double = await startDouble()
    double.controls.failPhase2('quota', 'quota')
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle()
    const seen: string[] = []
    for (const name of ['commit:accepted', 'receipt:failed', 'receipt:settled'] satisfies EventName[])
      lifecycle.on(name, () => seen.push(name))
    await mark(lifecycle, provider, makeTurns(3))
    lifecycle.switchSession('s', 'next')
    await finish(lifecycle, 's')
    const round = ['commit:accepted', 'receipt:failed']
    expect(seen).toEqual([...round, ...round, 'commit:accepted', 'receipt:settled'])
    expect(double.stats.extracted).toEqual(once(makeTurns(3)))
  })

  it('an extraction that always fails is parked and reported, and learned once when the model is back', async () => {
    const double = await startDouble()
    double.controls.failPhase2('a', 'b', 'c')
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle({ retry: { attempts: 3, minDelayMs: 1, maxDelayMs: 4 } })
    await mark(lifecycle, provider, makeTurns(2))
    lifecycle.switchSession('s', 'next')
    const snapshot = await finish(lifecycle, 's')
    expect(snapshot).toMatchObject({ watermark: 0, segments: [{ state: 'parked', attempts: 3 }] })
    expect(snapshot.segments[0]!.error).toMatch(/SETTLE_FAILED.*GET \/api\/v1\/tasks\//)
    expect(await lifecycle.health()).toMatchObject({ parked: 1 })
    expect(double.stats.extracted).toEqual({})
    await lifecycle.retryParked('s')
    expect(await finish(lifecycle, 's')).toMatchObject({ watermark: 2 })
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it('turns that come while the first segment is extracted are a segment of their own', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle()
    await mark(lifecycle, provider, makeTurns(2))
    await lifecycle.commit('s')
    await mark(lifecycle, provider, makeTurns(2, 's', 3))
    await lifecycle.commit('s')
    await until('both are running', () => double.controls.tasks().every((task) => task.status === 'running'))
    double.controls.releasePhase2(double.controls.tasks()[1]!.id)
    double.controls.releasePhase2(double.controls.tasks()[0]!.id, { failed: 'first lost' })
    double.controls.releasePhase2()
    expect(await finish(lifecycle, 's')).toMatchObject({ watermark: 4 })
    expect(double.stats.extracted).toEqual(once(makeTurns(4)))
  })

  it('what nobody can tell any more is parked with its receipt at the settle deadline, not lost and not repeated', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle({ settleTimeoutMs: 100 })
    await mark(lifecycle, provider, makeTurns(1))
    await lifecycle.commit('s')
    const { id, sessionId } = double.controls.tasks()[0]!
    double.controls.expireTask(id)
    await fetch(`${double.url}/api/v1/sessions/${sessionId}`, { method: 'DELETE' })
    const snapshot = await finish(lifecycle, 's')
    expect(snapshot.segments).toMatchObject([{ state: 'parked' }])
    expect(double.stats.requests['commit']).toBe(1)
  })

  it('a graceful stop of the server while it extracts costs a repetition, no turn', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    double.controls.holdPhase2()
    const provider = makeProvider(double, { apiKey: double.controls.keys.user })
    const lifecycle = await openLifecycle()
    await mark(lifecycle, provider, makeTurns(2))
    await lifecycle.commit('s')
    await taskEnds(double, double.controls.tasks()[0]!.id, 'running')
    await double.controls.restart({ graceful: true })
    double.controls.releasePhase2()
    expect(await finish(lifecycle, 's')).toMatchObject({ watermark: 2 })
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it('a receipt outlives the process: the next one settles it, and repairs it when it failed', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const path = join(temporaryDirectory(), 'ledger.db')
    const first = await openLifecycle({ ledger: sqliteLedger({ path }) })
    const before = makeProvider(double)
    await mark(first, before, makeTurns(2))
    expect(await first.commit('s')).toMatchObject({ status: 'accepted' })
    await first.close()
    await before.close()
    const { id } = double.controls.tasks()[0]!
    await taskEnds(double, id, 'running')
    double.controls.releasePhase2(id, { failed: 'model gone' })
    double.controls.releasePhase2()
    const provider = makeProvider(double)
    const second = await openLifecycle({
      ledger: sqliteLedger({ path }),
      revive: ({ sessionId }) => provider.agent(sessionId),
    })
    expect(await finish(second, 's')).toMatchObject({ watermark: 2, segments: [] })
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it('after a rotation the moved agent commits both names, each turn under its own', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle()
    await mark(lifecycle, provider, makeTurns(1, 'old'))
    await lifecycle.rotate('old', 'new')
    await lifecycle.markTurnCompleted('new', { messages: [{ role: 'user', content: 'after' }] })
    lifecycle.switchSession('new', 'other')
    await finish(lifecycle, 'old')
    await finish(lifecycle, 'new')
    expect(double.stats.extracted).toEqual({ 'old:1': 1, 'new:1': 1 })
  })

  it('a drain ends at its deadline when the server hangs, and nothing is learned twice when it comes back', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const lifecycle = await openLifecycle({ abandonGraceMs: 50 })
    await mark(lifecycle, provider, makeTurns(2))
    const gate = double.controls.gate('batch', 'before')
    const report = await lifecycle.drain({ deadlineMs: 300 })
    expect(report).toMatchObject({ committed: 0, timedOut: true, remaining: [{ sessionId: 's', from: 1, to: 2 }] })
    gate.release()
    lifecycle.switchSession('s', 'next')
    expect(await finish(lifecycle, 's')).toMatchObject({ watermark: 2 })
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it('neither the key nor a word of the conversation is in a log, an event, an error or the state', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    const apiKey = double.controls.keys.user
    const logger = recordingLogger()
    const provider = makeProvider(double, { apiKey, logger })
    const lifecycle = await openLifecycle({ logger })
    const events: unknown[] = []
    for (const name of [
      'commit:failed',
      'commit:accepted',
      'receipt:failed',
      'segment:parked',
      'receipt:settled',
    ] satisfies EventName[])
      lifecycle.on(name, (event) => events.push(event))
    const quoting = (status: number, code: string) => ({
      status,
      body: { status: 'error', error: { code, message: `${apiKey} said: question 1` } },
    })
    double.controls.answerNext('batch', quoting(500, 'INTERNAL'))
    double.controls.answerNext('commit', quoting(503, 'UNAVAILABLE'))
    double.controls.answerNext('get', quoting(500, `${apiKey} question 1`))
    double.controls.failPhase2(`${apiKey}: question 1`)
    await mark(lifecycle, provider, makeTurns(2))
    lifecycle.switchSession('s', 'next')
    await finish(lifecycle, 's')
    double.controls.answerNext('create', quoting(403, 'PERMISSION_DENIED'))
    await mark(lifecycle, provider, makeTurns(1, 'parked'))
    const outcome = await lifecycle.commit('parked')
    expect(outcome.status).toBe('parked')
    const state = await lifecycle.inspect('parked')
    const error = (outcome as { error: Error }).error
    const everything = logger.text() + JSON.stringify([events, state, error]) + error.message + String(error.stack)
    expect(double.controls.pendingFaults()).toBe(0)
    expect(events.length).toBeGreaterThan(4)
    expect(everything).not.toContain(apiKey)
    expect(everything).not.toContain('question 1')
    expect(everything).not.toContain('answer 1')
  })
})
