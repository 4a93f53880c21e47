import { describe, expect, it } from 'vitest'
import { recordingLogger } from '../../src/testing/index.js'
import { makeCommit, makeProvider, makeTurns, once, play } from './driver.js'
import { read, startDouble, taskEnds, until } from './wire.js'

/** The points of "what this asks of the adapter", one by one, against the double of commit 6e944cc. */

describe('what the adapter answers', () => {
  it('point 1: nothing, accepted and unknown are three answers, and settlement is a fourth', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const agent = makeProvider(double).agent('s')
    const quiet = makeCommit(
      [{ sessionId: 's', generation: 1, messages: [{ role: 'system', content: 'x' }], completedAt: 0 }],
      'k0',
    )
    expect(await agent.commitMemorySession(quiet)).toEqual({ status: 'nothing' })
    expect(double.stats.requests).toEqual({ get: 1 })

    const commit = makeCommit(makeTurns(2), 'k1')
    const answer = await agent.commitMemorySession(commit)
    expect(answer).toMatchObject({ status: 'accepted' })
    const receipt = (answer as { receipt: string }).receipt
    expect(await agent.settleMemoryCommit!(receipt, commit)).toEqual({ status: 'pending' })
    const [task] = double.controls.tasks()
    await taskEnds(double, task!.id, 'running')
    double.controls.releasePhase2(task!.id)
    expect(await agent.settleMemoryCommit!(receipt, commit)).toEqual({ status: 'committed' })

    double.controls.dropRequest('get')
    const unknown = Promise.resolve(agent.commitMemorySession(makeCommit(makeTurns(1), 'k2')))
    await expect(unknown).rejects.toMatchObject({ code: 'PROVIDER_FAILED', retryable: true })
  })

  it.each([
    { status: 'skipped', reason: 'no_messages', task_id: null, archived: false },
    { status: 'accepted', task_id: null, archived: false },
  ])(
    'point 9: a commit that found nothing ($status) is no success: it is looked into and tried again',
    async (result) => {
      const double = await startDouble()
      double.controls.answerNext('commit', { status: 200, body: { status: 'ok', result } })
      const turns = makeTurns(1)
      const played = await play(makeProvider(double).agent('s'), turns)
      expect(played).toMatchObject({ outcome: 'committed', attempts: 2 })
      expect(double.stats.extracted).toEqual(once(turns))
    },
  )

  it("point 1: cleanWhen 'accepted' is content with a durable acceptance, never with HTTP 200", async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const agent = makeProvider(double, { cleanWhen: 'accepted' }).agent('s')
    expect(await agent.commitMemorySession(makeCommit(makeTurns(1), 'k1'))).toEqual({ status: 'committed' })
    double.controls.releasePhase2()
    // The retry of this one is skipped with 200, and its memories are lost: fact 8.
    double.controls.failNext('commit', 'after-rewrite')
    const turns = makeTurns(1, 's', 2)
    const played = await play(agent, turns, { key: 'k2' })
    expect(played).toMatchObject({ outcome: 'committed', keys: ['k2'] })
    await until('it is extracted', () => double.stats.extracted['s:2'] !== undefined)
    expect(double.stats.extracted).toEqual({ 's:1': 1, 's:2': 1 })
  })

  it('point 2: a failed extraction goes to a fresh session under its new key, and is then learned once', async () => {
    const double = await startDouble()
    double.controls.failPhase2('model gone', 'model gone again')
    const turns = makeTurns(3)
    const logger = recordingLogger()
    const played = await play(makeProvider(double, { logger }).agent('s'), turns)
    expect(played).toMatchObject({ outcome: 'committed', attempts: 3 })
    expect(new Set(played.keys).size).toBe(3)
    expect(new Set(double.controls.sessions().map((session) => session.id)).size).toBe(3)
    expect(double.stats.extracted).toEqual(once(turns))
    expect(logger.lines.filter((line) => line.level === 'warn')).toHaveLength(2)
    expect(logger.text() + JSON.stringify(played.errors)).not.toContain('model gone')
  })

  it('point 2: a cancelled extraction is a failed one', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const turns = makeTurns(1)
    const played = await play(makeProvider(double).agent('s'), turns, {
      between() {
        const running = double.controls.tasks().filter((task) => task.status === 'running')
        for (const { id } of running)
          double.controls.releasePhase2(id, double.controls.tasks().length === 1 ? 'cancelled' : 'completed')
      },
    })
    expect(played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('point 3: messages carry our turn ids, and the answer that got lost is found by reading', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    double.controls.dropResponse('batch')
    double.controls.dropResponse('commit')
    const answer = await makeProvider(double)
      .agent('s')
      .commitMemorySession(makeCommit(makeTurns(2), 'k'))
    expect(answer).toMatchObject({ status: 'accepted' })
    expect(double.stats.requests).toMatchObject({ batch: 1, commit: 1 })
    const [session] = double.controls.sessions()
    const shown = await read(double, `/sessions/${session!.id}/context`)
    const tags = (shown.json.result?.['messages'] as { turn_id: string; source_message_ids: string[] }[]).map(
      (message) => [message.turn_id, message.source_message_ids[0]],
    )
    expect(tags).toEqual([
      ['s:1', 's:1:0'],
      ['s:1', 's:1:1'],
      ['s:2', 's:2:0'],
      ['s:2', 's:2:1'],
    ])
  })

  it('point 4: a second attempt waits for the one that was abandoned: one writer a session', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const turns = makeTurns(2)
    const gate = double.controls.gate('batch', 'before')
    const abandoned = new AbortController()
    const first = Promise.resolve(
      provider.agent('s').commitMemorySession(makeCommit(turns, 'k', { signal: abandoned.signal })),
    ).catch((error: unknown) => error)
    await gate.reached
    const second = play(provider.agent('s'), turns, { key: 'k' })
    // Time enough for a request of the second attempt to arrive, if it sent one.
    for (let times = 0; times < 3; times += 1) await fetch(`${double.url}/ready`)
    expect(double.stats.requests).toEqual({ get: 1, create: 1, batch: 1, ready: 3 })
    abandoned.abort()
    expect(await first).toMatchObject({ code: 'ABORTED' })
    expect(await second).toMatchObject({ outcome: 'committed' })
    gate.release()
    await until('the late request has landed', () => double.controls.sessions().some((session) => session.live > 0))
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('point 4: an attempt aborted while it waits for an earlier one sends nothing', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const gate = double.controls.gate('get', 'before')
    const first = Promise.resolve(provider.agent('s').commitMemorySession(makeCommit(makeTurns(1), 'k')))
    await gate.reached
    const stop = new AbortController()
    const second = Promise.resolve(
      provider.agent('s').commitMemorySession(makeCommit(makeTurns(1), 'k', { signal: stop.signal })),
    )
    stop.abort()
    await expect(second).rejects.toMatchObject({ code: 'ABORTED' })
    gate.release()
    await first
    expect(double.stats.requests).toMatchObject({ batch: 1, commit: 1 })
  })

  it('point 5: the defaults outlast the lock wait of the server, and nothing is kept back from a commit', async () => {
    const { readOptions } = await import('../../src/providers/openviking/options.js')
    expect(readOptions({ endpoint: 'http://x' }).writeTimeoutMs).toBeGreaterThan(30_000)
    const double = await startDouble()
    const turns = makeTurns(120)
    expect(await play(makeProvider(double).agent('s'), turns)).toMatchObject({ outcome: 'committed', attempts: 1 })
    expect(double.stats.requests['batch']).toBe(3)
    expect(double.controls.sessions()).toEqual([{ id: expect.any(String) as string, live: 0, archives: ['done'] }])
  })

  it('point 6: one settlement watches the task with growing pauses until its limit', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const waits: number[] = []
    let now = 0
    const clock = {
      now: () => now,
      setTimer(callback: () => void, delayMs: number, options?: { readonly keepAlive?: boolean }) {
        // Request limits keep the process alive and never fire here; pauses pass at once.
        if (options?.keepAlive === true) return () => undefined
        waits.push(delayMs)
        now += delayMs
        setImmediate(callback)
        return () => undefined
      },
    }
    const agent = makeProvider(double, { settlePollMs: 20_000, clock }).agent('s')
    const commit = makeCommit(makeTurns(1), 'k')
    const { receipt } = (await agent.commitMemorySession(commit)) as { receipt: string }
    expect(await agent.settleMemoryCommit!(receipt, commit)).toEqual({ status: 'pending' })
    expect(waits).toEqual([500, 1000, 2000, 4000, 8000])
  })

  it('point 6: a task the server forgot is verified by its archive', async () => {
    const double = await startDouble()
    const agent = makeProvider(double).agent('s')
    const commit = makeCommit(makeTurns(1), 'k')
    const { receipt } = (await agent.commitMemorySession(commit)) as { receipt: string }
    const { id } = double.controls.tasks()[0]!
    await taskEnds(double, id, 'completed')
    double.controls.expireTask(id)
    expect(await agent.settleMemoryCommit!(receipt, commit)).toEqual({ status: 'committed' })
    expect(double.stats.requests['archive']).toBe(1)
  })

  it('point 6: a forgotten task whose archive failed has failed; one whose session is gone stays unknown', async () => {
    const double = await startDouble()
    const agent = makeProvider(double).agent('s')
    double.controls.failPhase2('no')
    const commit = makeCommit(makeTurns(1), 'k')
    const { receipt } = (await agent.commitMemorySession(commit)) as { receipt: string }
    const { id, sessionId } = double.controls.tasks()[0]!
    await taskEnds(double, id, 'failed')
    double.controls.expireTask(id)
    expect(await agent.settleMemoryCommit!(receipt, commit)).toMatchObject({
      status: 'failed',
      error: { code: 'SETTLE_FAILED' },
    })
    await fetch(`${double.url}/api/v1/sessions/${sessionId}`, { method: 'DELETE' })
    await expect(Promise.resolve(agent.settleMemoryCommit!(receipt, commit))).rejects.toMatchObject({
      code: 'PROVIDER_FAILED',
    })
  })

  it('point 6: a task that only shows a result is not done', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const agent = makeProvider(double).agent('s')
    const commit = makeCommit(makeTurns(1), 'k')
    const { receipt } = (await agent.commitMemorySession(commit)) as { receipt: string }
    double.controls.releasePhase2(double.controls.tasks()[0]!.id, 'result-only')
    expect(await agent.settleMemoryCommit!(receipt, commit)).toEqual({ status: 'pending' })
  })

  it('a task that completed without a memory is completed: what a model makes of a turn is its own affair', async () => {
    const double = await startDouble()
    double.controls.extractNothing()
    expect(await play(makeProvider(double).agent('s'), makeTurns(1))).toMatchObject({
      outcome: 'committed',
      attempts: 1,
    })
  })

  it.each([
    ['create', 403, 'PERMISSION_DENIED'],
    ['get', 401, 'UNAUTHENTICATED'],
    ['batch', 400, 'INVALID_ARGUMENT'],
    ['commit', 412, 'FAILED_PRECONDITION'],
  ] as const)('point 7: %s refused with %i is parked at once, with the work kept', async (op, status, code) => {
    const double = await startDouble()
    double.controls.answerNext(op, { status, body: { status: 'error', error: { code, message: 'no' } } })
    const turns = makeTurns(1)
    const agent = makeProvider(double).agent('s')
    const played = await play(agent, turns, { key: 'k' })
    expect(played).toMatchObject({ outcome: 'parked', attempts: 1 })
    expect(played.errors[0]).toMatchObject({ retryable: false, details: { status, code } })
    expect(await play(agent, turns, { key: 'k' })).toMatchObject({ outcome: 'committed' })
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('point 7: a wrong key is reported as such', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    const played = await play(makeProvider(double, { apiKey: 'wrong' }).agent('s'), makeTurns(1))
    expect(played.errors[0]).toMatchObject({ retryable: false, details: { code: 'UNAUTHENTICATED', status: 401 } })
    const good = makeProvider(double, { apiKey: double.controls.keys.user })
    expect(await play(good.agent('s'), makeTurns(1))).toMatchObject({ outcome: 'committed' })
  })

  it('point 8: a session that vanished before its commit is filled again', async () => {
    const double = await startDouble()
    const agent = makeProvider(double).agent('s')
    const turns = makeTurns(2)
    const gate = double.controls.gate('commit', 'before')
    const played = play(agent, turns)
    await gate.reached
    await fetch(`${double.url}/api/v1/sessions/${double.controls.sessions()[0]!.id}`, { method: 'DELETE' })
    gate.release()
    expect(await played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('point 9: a server without batches gets single messages, and is asked for batches once', async () => {
    const double = await startDouble({ profile: '0.3.4' })
    const provider = makeProvider(double)
    await play(provider.agent('s'), makeTurns(2))
    await play(provider.agent('s'), makeTurns(1, 's', 3))
    expect(double.stats.requests).toMatchObject({ batch: 1, add: 6 })
    expect(double.stats.extracted).toEqual(once(makeTurns(3)))
  })

  it('point 9: a session-404 on add is answered by creating and trying once more', async () => {
    const double = await startDouble()
    const missing = { code: 'NOT_FOUND', message: 'Session not found: x', details: { type: 'session', resource: 'x' } }
    double.controls.answerNext('batch', { status: 404, body: { status: 'error', error: missing } })
    const turns = makeTurns(1)
    expect(await play(makeProvider(double).agent('s'), turns)).toMatchObject({ outcome: 'committed', attempts: 1 })
    expect(double.stats.requests).toMatchObject({ create: 2, batch: 2 })
  })

  it('point 9: a server that does not take a commit policy gets the session without one', async () => {
    const double = await startDouble()
    const refused = { code: 'INVALID_ARGUMENT', message: 'Extra inputs are not permitted' }
    double.controls.answerNext('create', { status: 400, body: { status: 'error', error: refused } })
    expect(await play(makeProvider(double).agent('s'), makeTurns(1))).toMatchObject({
      outcome: 'committed',
      attempts: 1,
    })
    expect(double.stats.requests).toMatchObject({ create: 2 })
  })

  it('point 9: a server that names sessions itself is asked for one once, and what it made is deleted', async () => {
    const double = await startDouble({ profile: '0.2.8' })
    const provider = makeProvider(double)
    await play(provider.agent('s'), makeTurns(1))
    await play(provider.agent('s'), makeTurns(1, 's', 2))
    expect(double.stats.requests).toMatchObject({ create: 1, delete: 1 })
    expect(double.controls.sessions()).toHaveLength(2)
    expect(double.stats.extracted).toEqual(once(makeTurns(2)))
  })

  it.each(['0.4.16', '0.4.6', '0.3.4', '0.2.8'] as const)(
    'point 9: %s works without configuration',
    async (profile) => {
      const double = await startDouble({ profile })
      const agent = makeProvider(double).agent('s')
      const turns = makeTurns(3)
      expect(await play(agent, turns.slice(0, 2))).toMatchObject({ outcome: 'committed', attempts: 1 })
      double.controls.failPhase2('no')
      expect(await play(agent, turns.slice(2))).toMatchObject({ outcome: 'committed', attempts: 2 })
      expect(double.stats.extracted).toEqual(once(turns))
    },
  )

  it('point 9: a server whose failed archive blocks its session gets a fresh one at once', async () => {
    const double = await startDouble({ profile: '0.3.4' })
    double.controls.failNext('commit', 'before-rewrite')
    const turns = makeTurns(1)
    const played = await play(makeProvider(double).agent('s'), turns)
    expect(played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(played.keys).toHaveLength(1)
    expect(double.stats.extracted).toEqual(once(turns))
  })
})

describe('sessions on the server', () => {
  it('one a segment, named the same by every process, and never with the session id in the path', async () => {
    const { providerSessionId } = await import('../../src/providers/openviking/naming.js')
    const id = providerSessionId('chat/../42?', 'key', 0)
    expect(id).toMatch(/^tm-[0-9a-f]{40}-0$/)
    expect(providerSessionId('chat/../42?', 'key', 0)).toBe(id)
    expect(providerSessionId('chat/../42?', 'other', 0)).not.toBe(id)
    expect(providerSessionId('chat/../42?', 'key', 1)).not.toBe(id)
  })

  it('a request that may still land makes the next attempt leave that session; it is deleted in the end', async () => {
    const double = await startDouble()
    const turns = makeTurns(1)
    const gate = double.controls.gate('batch', 'before')
    const provider = makeProvider(double, { writeTimeoutMs: 100 })
    const played = await play(provider.agent('s'), turns)
    expect(played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(double.stats.requests['delete']).toBe(1)
    expect(double.controls.sessions()).toHaveLength(1)
    gate.release()
    await until('the late add has landed', () => double.controls.sessions().length === 2)
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('a commit that may still land is sent again into the same session, where only one can count', async () => {
    const double = await startDouble()
    const turns = makeTurns(1)
    const late = double.controls.gate('commit', 'before')
    const played = await play(makeProvider(double, { writeTimeoutMs: 250 }).agent('s'), turns)
    expect(played).toMatchObject({ outcome: 'committed', attempts: 2 })
    late.release()
    await late.passed
    await until('no task waits', () => double.controls.tasks().every((task) => /ed$/.test(task.status)))
    expect(double.stats.requests).toMatchObject({ create: 1, batch: 1, commit: 2 })
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('a late add that lands between the next add and its commit is in a session that is never committed', async () => {
    const double = await startDouble()
    const turns = makeTurns(1)
    const late = double.controls.gate('batch', 'before')
    const commit = double.controls.gate('commit', 'before')
    const played = play(makeProvider(double, { writeTimeoutMs: 250 }).agent('s'), turns)
    await commit.reached
    late.release()
    await until('the late add has landed', () => double.controls.sessions().every((session) => session.live === 2))
    commit.release()
    expect(await played).toMatchObject({ outcome: 'committed' })
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('a request that was refused lets the same process go on where it stopped', async () => {
    const double = await startDouble()
    const turns = makeTurns(120)
    const busy = { status: 429, body: { status: 'error', error: { code: 'RESOURCE_EXHAUSTED', message: '' } } }
    const agent = makeProvider(double).agent('s')
    // The second batch is refused; the third attempt need not send the first again.
    const gate = double.controls.gate('batch', 'before')
    const played = play(agent, turns)
    await gate.reached
    double.controls.answerNext('batch', busy)
    gate.release()
    expect(await played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(double.stats.requests['batch']).toBe(4)
    expect(double.controls.sessions()).toHaveLength(1)
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('the server may commit behind our back: every part must be extracted', async () => {
    const double = await startDouble()
    double.controls.autoCommitOver(50)
    double.controls.answerNext('create', {
      status: 409,
      body: { status: 'error', error: { code: 'ALREADY_EXISTS', message: '' } },
    })
    double.controls.holdPhase2()
    const turns = makeTurns(60)
    const played = play(makeProvider(double).agent('s'), turns, {
      between: () => {
        const running = double.controls.tasks().find((task) => task.status === 'running')
        if (running !== undefined) double.controls.releasePhase2(running.id)
      },
    })
    expect(await played).toMatchObject({ outcome: 'committed', attempts: 1 })
    expect(double.controls.sessions()[0]!.archives).toEqual(['done', 'done'])
    expect(double.stats.extracted).toEqual(once(turns))
  })

  it('a session that somebody else wrote into is never committed', async () => {
    const double = await startDouble()
    const turns = makeTurns(1)
    const gate = double.controls.gate('batch', 'after')
    const played = play(makeProvider(double).agent('s'), turns)
    await gate.reached
    const { id } = double.controls.sessions()[0]!
    const body = JSON.stringify({ role: 'user', content: 'foreign', turn_id: 'foreign' })
    await fetch(`${double.url}/api/v1/sessions/${id}/messages`, { method: 'POST', body })
    gate.release()
    expect(await played).toMatchObject({ outcome: 'committed', attempts: 2 })
    expect(double.stats.extracted).toEqual(once(turns))
  })
})

describe('recall', () => {
  it('finds what was committed, marked as recalled, in both modes of search', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const turns = [
      { sessionId: 's', generation: 1, messages: [{ role: 'user', content: 'I drink green tea' }], completedAt: 0 },
    ]
    expect(await provider.recall('tea')).toBe('')
    await play(provider.agent('s'), turns)
    const expected = '<recalled-memory>\n- I drink green tea\n</recalled-memory>'
    expect(await provider.recall('green tea', { limit: 3 })).toBe(expected)
    expect(await provider.recall('green tea', { sessionId: 's' })).toBe(expected)
    expect(double.stats.requests).toMatchObject({ find: 2, search: 1 })
  })

  it('refuses nonsense, and reports a failure with its code', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    await expect(provider.recall(' ')).rejects.toThrow(TypeError)
    await expect(provider.recall('x', { limit: 0 })).rejects.toThrow(TypeError)
    expect(() => provider.agent('')).toThrow(TypeError)
    double.controls.failNext('find', 'before')
    await expect(provider.recall('x')).rejects.toMatchObject({ code: 'PROVIDER_FAILED', details: { status: 500 } })
    const stop = AbortSignal.abort()
    await expect(provider.recall('x', { signal: stop })).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it('shows the view of the peer', async () => {
    const double = await startDouble()
    const provider = makeProvider(double, { peer: 'ada' })
    await play(provider.agent('s'), makeTurns(1))
    const [session] = double.controls.sessions()
    const archive = await read(double, `/sessions/${session!.id}/archives/archive_001`)
    const peers = (archive.json.result?.['messages'] as { peer_id?: string }[]).map((message) => message.peer_id)
    expect(peers).toEqual(['ada', undefined])
    expect(await provider.recall('question')).toContain('question 1')
  })
})
