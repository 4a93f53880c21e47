import { describe, expect, it } from 'vitest'
import { post, read, request, startDouble, taskEnds, until, type Double } from './wire.js'

/** Rows of the double's behaviour table; the server is OpenViking at commit 6e944cc unless a profile is named. */

const say = (text: string, turn = 't1') => ({
  role: 'user',
  content: text,
  turn_id: turn,
  source_message_ids: [`${turn}:0`],
})

async function addAndCommit(double: Double, id: string, text = 'hello', turn = 't1'): Promise<string> {
  await post(double, `/sessions/${id}/messages`, say(text, turn))
  const answer = await post(double, `/sessions/${id}/commit`, {})
  return String(answer.json.result?.['task_id'])
}

const field = (value: unknown, ...path: (string | number)[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<string | number, unknown> | null | undefined)?.[key], value)

describe('the OpenViking double: envelopes, routes, authentication', () => {
  it('row 1: success carries null keys, commit and search do not, errors have their own envelope', async () => {
    const double = await startDouble()
    const added = await post(double, '/sessions/a/messages', say('x'))
    expect(Object.keys(added.json)).toEqual(['status', 'result', 'error', 'telemetry', 'profile'])
    const committed = await post(double, '/sessions/a/commit', {})
    expect(Object.keys(committed.json)).toEqual(['status', 'result'])
    expect(Object.keys((await post(double, '/search/find', { query: 'x' })).json)).toEqual(['status', 'result'])
    expect((await read(double, '/sessions/none')).json).toEqual({
      status: 'error',
      error: { code: 'NOT_FOUND', message: 'Session none not found' },
    })
    expect(added.headers.get('x-request-id')).toMatch(/./)
    expect(added.headers.get('x-process-time')).toMatch(/^\d/)
    expect((await read(double, '/sessions/a', { 'x-request-id': 'mine.1' })).headers.get('x-request-id')).toBe('mine.1')
    expect((await read(double, '/sessions/a', { 'x-request-id': 'not good' })).status).toBe(400)
  })

  it('row 2: what does not validate is 400 with the place and the reason', async () => {
    const double = await startDouble()
    const answer = await post(double, '/sessions/a/messages', { role: 'user' })
    expect(answer.status).toBe(400)
    expect(answer.json.error?.code).toBe('INVALID_ARGUMENT')
    expect(answer.json.error?.message).toMatch(/^Invalid request parameters: body: /)
    expect(field(answer.json.error, 'details', 'validation_errors', 0, 'loc')).toBe('body')
    expect((await post(double, '/sessions/a/messages', { role: 'user', content: 'x', peer_id: 'a b' })).status).toBe(
      400,
    )
    expect((await post(double, '/sessions/a/commit', { keep_recent_turn_count: 1 })).status).toBe(400)
  })

  it('row 3: an unknown route is 404 without details, a wrong method 405', async () => {
    const double = await startDouble()
    const missing = await read(double, '/nothing')
    expect([missing.status, missing.json.error]).toEqual([404, { code: 'NOT_FOUND', message: 'Not Found' }])
    const wrong = await request(double, 'PUT', '/api/v1/sessions/a')
    expect([wrong.status, wrong.json.error?.code]).toEqual([405, 'UNKNOWN'])
  })

  it('row 4: /health is bare, open to everybody, and 200 even with a bad key', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    const answer = await request(double, 'GET', '/health', undefined, { 'x-api-key': 'wrong' })
    expect(answer.status).toBe(200)
    expect(answer.json).toEqual({ status: 'ok', healthy: true, version: '0.4.16', auth_mode: 'api_key' })
    const known = await request(double, 'GET', '/health', undefined, { 'x-api-key': double.controls.keys.user })
    expect(known.json).toMatchObject({ account_id: 'default', role: 'user' })
  })

  it('row 5: /ready is 503 when a check fails', async () => {
    const double = await startDouble()
    expect((await request(double, 'GET', '/ready')).status).toBe(200)
    double.controls.setReady(false)
    const answer = await request(double, 'GET', '/ready')
    expect([answer.status, answer.json.status]).toEqual([503, 'not_ready'])
  })

  it('row 6: three modes of authentication, each with its own refusal', async () => {
    const keyed = await startDouble({ authMode: 'api_key' })
    const { root, user } = keyed.controls.keys
    expect((await read(keyed, '/sessions')).status).toBe(401)
    expect((await read(keyed, '/sessions', { 'x-api-key': 'wrong' })).json.error?.code).toBe('UNAUTHENTICATED')
    expect((await read(keyed, '/sessions', { authorization: `Bearer ${user}` })).status).toBe(200)
    expect((await read(keyed, '/sessions', { 'x-api-key': root })).json.error?.code).toBe('PERMISSION_DENIED')
    expect((await read(keyed, '/tasks', { 'x-api-key': root })).status).toBe(200)
    await post(keyed, '/sessions', { session_id: 's' }, { 'x-api-key': user, 'x-openviking-user': 'somebody' })
    const mine = await read(keyed, '/sessions/s', { 'x-api-key': user })
    expect(field(mine.json, 'result', 'user', 'user_id')).toBe('default')

    const trusted = await startDouble({ authMode: 'trusted' })
    const rootKey = { 'x-api-key': trusted.controls.keys.root }
    expect((await read(trusted, '/sessions', rootKey)).status).toBe(400)
    const named = { 'x-openviking-account': 'acme', 'x-openviking-user': 'ada' }
    expect((await read(trusted, '/sessions', named)).status).toBe(401)
    expect((await read(trusted, '/sessions', { ...rootKey, ...named })).status).toBe(200)

    const dev = await startDouble()
    expect((await read(dev, '/sessions')).status).toBe(200)
  })

  it('row 7: tenants are disjoint, and the task of another owner is 404', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    const ada = { 'x-api-key': double.controls.addUser('acme', 'ada') }
    const bob = { 'x-api-key': double.controls.addUser('acme', 'bob') }
    await post(double, '/sessions/s/messages', say('x'), ada)
    const taskId = String((await post(double, '/sessions/s/commit', {}, ada)).json.result?.['task_id'])
    expect((await read(double, '/sessions/s', bob)).status).toBe(404)
    const foreign = await read(double, `/tasks/${taskId}`, bob)
    expect([foreign.status, field(foreign.json.error, 'details', 'type')]).toEqual([404, 'task'])
    expect((await read(double, `/tasks/${taskId}`, ada)).status).toBe(200)
  })
})

describe('the OpenViking double: sessions and messages', () => {
  it('row 8: creating an id twice is 409, and without an id the server makes one', async () => {
    const double = await startDouble()
    expect((await post(double, '/sessions', { session_id: 's' })).status).toBe(200)
    const again = await post(double, '/sessions', { session_id: 's' })
    expect([again.status, again.json.error?.code]).toEqual([409, 'ALREADY_EXISTS'])
    const generated = await post(double, '/sessions')
    expect(generated.json.result?.['session_id']).toMatch(/^\d{8}-\d{6}-[0-9a-f]{16}$/)
  })

  it('row 9: add creates the session, repeats are duplicates, a batch has at most 100', async () => {
    const double = await startDouble()
    const one = await post(double, '/sessions/s/messages', say('12345678'))
    expect(one.json.result).toEqual({ session_id: 's', message_count: 1, pending_tokens: 2 })
    expect((await post(double, '/sessions/s/messages', say('12345678'))).json.result?.['message_count']).toBe(2)
    const batch = await post(double, '/sessions/s/messages/batch', { messages: [say('a'), say('b')] })
    expect(batch.json.result).toMatchObject({ message_count: 4, added: 2 })
    expect((await post(double, '/sessions/s/messages/batch', { messages: [] })).json.result?.['added']).toBe(0)
    const tooMany = await post(double, '/sessions/s/messages/batch', { messages: Array(101).fill(say('a')) })
    expect(tooMany.status).toBe(400)
    const meta = await read(double, '/sessions/s')
    expect(meta.json.result).toMatchObject({ message_count: 4, total_message_count: 4, commit_count: 0 })
    const shown = (await read(double, '/sessions/s/context')).json
    expect(field(shown, 'result', 'messages', 0, 'id')).toMatch(/^msg_[0-9a-f]{32}$/)
    expect(field(shown, 'result', 'messages', 0, 'turn_id')).toBe('t1')
  })

  it('row 9: a user message of several tool parts becomes one message a part, so the count rises by more', async () => {
    const double = await startDouble()
    const tool = { type: 'tool', tool_id: '1', tool_name: 'n', tool_output: 'o' }
    const answer = await post(double, '/sessions/s/messages', { role: 'user', parts: [tool, tool] })
    expect(answer.json.result?.['message_count']).toBe(2)
  })

  it('row 10: append and commit share one lock, and a busy one is 409 path_busy', async () => {
    const double = await startDouble()
    await post(double, '/sessions/s/messages', say('x'))
    expect(double.controls.lockWaitMs).toBe(30_000)
    double.controls.lockWaitMs = 5
    const release = await double.controls.holdLock('s')
    for (const path of ['/sessions/s/messages', '/sessions/s/commit']) {
      const busy = await post(double, path, say('y'))
      expect([busy.status, busy.json.error?.code]).toEqual([409, 'CONFLICT'])
      expect(busy.json.error?.details).toMatchObject({ conflict_type: 'path_busy', retryable: true })
    }
    release()
    expect((await post(double, '/sessions/s/commit', {})).json.result?.['status']).toBe('accepted')
  })

  it('row 23: delete wins over a pending task, and a later add starts an empty session', async () => {
    const double = await startDouble()
    expect((await request(double, 'DELETE', '/api/v1/sessions/s')).status).toBe(404)
    double.controls.holdPhase2()
    await addAndCommit(double, 's', 'first')
    const second = await addAndCommit(double, 's', 'second')
    expect((await request(double, 'DELETE', '/api/v1/sessions/s')).json.result).toEqual({ session_id: 's' })
    double.controls.releasePhase2()
    await taskEnds(double, second, 'failed')
    const task = await read(double, `/tasks/${second}`)
    expect(task.json.result?.['error']).toBe("Session 's' no longer exists")
    expect((await post(double, '/sessions/s/messages', say('z'))).json.result?.['message_count']).toBe(1)
  })

  it('row 24: used answers the counts of the request and changes nothing', async () => {
    const double = await startDouble()
    await post(double, '/sessions/s/messages', say('x'))
    const before = (await read(double, '/sessions/s')).json
    const answer = await post(double, '/sessions/s/used', { contexts: ['a', 'b'], skill: { uri: 'x' } })
    expect(answer.json.result).toEqual({ session_id: 's', contexts_used: 2, skills_used: 1 })
    expect((await read(double, '/sessions/s')).json).toEqual(before)
  })

  it('row 25: extract works on live messages only, again at every call', async () => {
    const double = await startDouble()
    await addAndCommit(double, 's')
    expect((await post(double, '/sessions/s/extract')).json.result).toEqual([])
    await post(double, '/sessions/s/messages', say('new', 't2'))
    await post(double, '/sessions/s/extract')
    await post(double, '/sessions/s/extract')
    expect(double.stats.extracted['t2']).toBe(2)
  })

  it('row 26: find and search have their shapes, refuse unknown keys, and do not mind a missing session', async () => {
    const double = await startDouble()
    await taskEnds(double, await addAndCommit(double, 's', 'Ada likes green tea'), 'completed')
    const found = await post(double, '/search/find', { query: 'green tea' })
    expect(found.json.result).toMatchObject({ resources: [], skills: [], total: 1 })
    expect(field(found.json, 'result', 'memories', 0, 'abstract')).toBe('Ada likes green tea')
    const strange = await post(double, '/search/find', { query: 'x', session_id: 's' })
    expect([strange.status, strange.json.error?.code]).toEqual([400, 'INVALID_ARGUMENT'])
    expect((await post(double, '/search/search', { query: 'tea', session_id: 'none' })).status).toBe(200)
    expect((await post(double, '/search/recall', { query: 'tea' })).headers.get('deprecation')).toBe('true')
  })
})

describe('the OpenViking double: commit and extraction', () => {
  it('row 11: committing a session that does not exist is 404 with details', async () => {
    const double = await startDouble()
    const answer = await post(double, '/sessions/none/commit', {})
    expect([answer.status, answer.json.error]).toEqual([
      404,
      { code: 'NOT_FOUND', message: 'Session not found: none', details: { type: 'session', resource: 'none' } },
    ])
  })

  it('row 12: nothing to commit is skipped, and inside the keep window pending_tokens becomes 0', async () => {
    const double = await startDouble()
    await post(double, '/sessions', { session_id: 's' })
    const empty = await post(double, '/sessions/s/commit', {})
    expect(empty.json.result).toMatchObject({
      status: 'skipped',
      reason: 'no_messages',
      task_id: null,
      archived: false,
    })
    await post(double, '/sessions/s/messages', say('hello'))
    const kept = await post(double, '/sessions/s/commit', { keep_recent_count: 5 })
    expect(kept.json.result?.['reason']).toBe('all_within_keep_window')
    const meta = (await read(double, '/sessions/s')).json.result
    expect(meta).toMatchObject({ message_count: 1, pending_tokens: 0, keep_recent_count: 5 })
  })

  it('row 13: everything of an accepted commit is visible before its answer', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    await post(double, '/sessions/s/messages', say('hello'))
    const answer = await post(double, '/sessions/s/commit', { keep_recent_count: 0 })
    expect(answer.json.result).toMatchObject({
      status: 'accepted',
      archived: true,
      archive_uri: 'viking://user/default/sessions/s/history/archive_001',
    })
    const meta = (await read(double, '/sessions/s')).json.result
    expect(meta).toMatchObject({ message_count: 0, total_message_count: 1, commit_count: 1 })
    expect(field(meta, 'last_commit_at')).not.toBeNull()
    expect(double.controls.tasks()).toHaveLength(1)
  })

  it('row 14: of two concurrent commits exactly one is accepted', async () => {
    const double = await startDouble()
    await post(double, '/sessions/s/messages', say('hello'))
    const answers = await Promise.all([1, 2, 3].map(() => post(double, '/sessions/s/commit', {})))
    expect(answers.map((answer) => answer.json.result?.['status']).sort()).toEqual(['accepted', 'skipped', 'skipped'])
  })

  it('row 15: pending → running → completed, and a result that is there early says nothing', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const id = await addAndCommit(double, 's')
    await taskEnds(double, id, 'running')
    double.controls.releasePhase2(id, 'result-only')
    const early = (await read(double, `/tasks/${id}`)).json.result
    expect(early).toMatchObject({ status: 'running', resource_id: 's', task_type: 'session_commit' })
    expect(field(early, 'result', 'session_id')).toBe('s')
    expect(double.stats.extracted).toEqual({})
    double.controls.releasePhase2(id)
    const done = (await read(double, `/tasks/${id}`)).json.result
    expect(done).toMatchObject({ status: 'completed', error: null })
    expect(field(done, 'result', 'memories_extracted')).toEqual({ events: 1 })
    expect(double.stats.extracted).toEqual({ t1: 1 })
  })

  it('row 16: archives of a session run in order, and a failed one does not block the next', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const first = await addAndCommit(double, 's', 'one', 't1')
    const second = await addAndCommit(double, 's', 'two', 't2')
    await taskEnds(double, first, 'running')
    expect(double.controls.tasks()[1]?.status).toBe('pending')
    double.controls.releasePhase2(first, { failed: 'model gone' })
    await taskEnds(double, second, 'running')
    double.controls.releasePhase2(second)
    expect(double.stats.extracted).toEqual({ t2: 1 })
  })

  it('row 17: a failed extraction loses its messages: no archive, no context, no later commit brings them back', async () => {
    const double = await startDouble()
    double.controls.failPhase2(`bad key sk-secret ${'x'.repeat(600)}`)
    const id = await addAndCommit(double, 's')
    await taskEnds(double, id, 'failed')
    const error = String((await read(double, `/tasks/${id}`)).json.result?.['error'])
    expect(error).not.toContain('sk-secret')
    expect(error.length).toBeLessThanOrEqual(500)
    expect((await read(double, '/sessions/s/archives/archive_001')).status).toBe(404)
    const shown = (await read(double, '/sessions/s/context')).json.result
    expect([field(shown, 'messages'), field(shown, 'stats', 'failedArchives')]).toEqual([[], 1])
    await taskEnds(double, await addAndCommit(double, 's', 'new', 't2'), 'completed')
    expect(double.stats.extracted).toEqual({ t2: 1 })
  })

  it('row 18: context shows the messages of a pending archive, and only the overview of a finished one', async () => {
    const double = await startDouble()
    double.controls.holdPhase2()
    const id = await addAndCommit(double, 's')
    expect(field((await read(double, '/sessions/s/context')).json, 'result', 'messages')).toHaveLength(1)
    await taskEnds(double, id, 'running')
    double.controls.releasePhase2(id)
    const after = (await read(double, '/sessions/s/context?token_budget=1000')).json.result
    expect(field(after, 'messages')).toEqual([])
    expect(field(after, 'latest_archive_overview')).toContain('hello')
    expect((await read(double, '/sessions/s/archives/archive_001')).status).toBe(200)
    expect((await read(double, '/sessions/s/context?token_budget=-1')).status).toBe(400)
  })

  it('row 19: a fault before the rewrite leaves the messages live; one after it loses them behind a skipped', async () => {
    const double = await startDouble()
    for (const [at, id, live, retry] of [
      ['before-rewrite', 'a', 1, 'accepted'],
      ['after-rewrite', 'b', 0, 'skipped'],
    ] as const) {
      await post(double, `/sessions/${id}/messages`, say('hello', id))
      double.controls.failNext('commit', at)
      const broken = await post(double, `/sessions/${id}/commit`, {})
      expect([broken.status, broken.json.error?.code]).toEqual([500, 'INTERNAL'])
      expect((await read(double, `/sessions/${id}`)).json.result?.['message_count']).toBe(live)
      expect((await post(double, `/sessions/${id}/commit`, {})).json.result?.['status']).toBe(retry)
    }
    await until('every task has ended', () => double.controls.tasks().every((task) => /ed$/.test(task.status)))
    expect(double.controls.tasks().map((task) => task.status)).toEqual(['failed', 'completed', 'failed'])
    expect(double.stats.extracted).toEqual({ a: 1 })
  })

  it('row 19: a kill before the rewrite keeps the messages, one after it lets the redelivery finish', async () => {
    const double = await startDouble()
    for (const [at, id] of [
      ['killed-before-rewrite', 'a'],
      ['killed-after-rewrite', 'b'],
    ] as const) {
      await post(double, `/sessions/${id}/messages`, say('hello', id))
      double.controls.failNext('commit', at)
      await expect(post(double, `/sessions/${id}/commit`, {})).rejects.toThrow()
      await until('the server is back', () =>
        read(double, '/sessions').then(
          () => true,
          () => false,
        ),
      )
      await post(double, `/sessions/${id}/commit`, {})
    }
    await until('both are extracted', () => Object.keys(double.stats.extracted).length === 2)
    expect(double.stats.extracted).toEqual({ a: 1, b: 1 })
  })

  it('row 20: a hard kill resumes and completes once; a graceful stop fails what was running', async () => {
    const double = await startDouble({ authMode: 'trusted' })
    const headers = {
      'x-api-key': double.controls.keys.root,
      'x-openviking-account': 'acme',
      'x-openviking-user': 'ada',
    }
    double.controls.holdPhase2()
    for (const graceful of [false, true]) {
      const turn = graceful ? 'graceful' : 'hard'
      await post(double, `/sessions/${turn}/messages`, say('x', turn), headers)
      const answer = await post(double, `/sessions/${turn}/commit`, {}, headers)
      const id = String(answer.json.result?.['task_id'])
      await taskEnds(double, id, 'running')
      await double.controls.restart({ graceful })
      if (!graceful) {
        await taskEnds(double, id, 'running')
        double.controls.releasePhase2(id)
      }
      const task = (await read(double, `/tasks/${id}`, headers)).json.result
      expect(field(task, 'status')).toBe(graceful ? 'failed' : 'completed')
      if (graceful) expect(field(task, 'error')).toBe('session commit cancelled')
    }
    expect(double.stats.extracted).toEqual({ hard: 1 })
  })

  it('row 21: in dev mode a finished task is 404 after a restart, with keys it is still there', async () => {
    for (const authMode of ['dev', 'api_key'] as const) {
      const double = await startDouble({ authMode })
      const headers = { 'x-api-key': double.controls.keys.user }
      await post(double, '/sessions/s/messages', say('x'), headers)
      const answer = await post(double, '/sessions/s/commit', {}, headers)
      const id = String(answer.json.result?.['task_id'])
      await taskEnds(double, id, 'completed')
      await double.controls.restart({ graceful: true })
      expect((await read(double, `/tasks/${id}`, headers)).status).toBe(authMode === 'dev' ? 404 : 200)
    }
  })

  it('row 22: the task list is filtered and newest first, and an expired task is gone', async () => {
    const double = await startDouble()
    const ids: string[] = []
    for (const id of ['a', 'b', 'a']) ids.push(await addAndCommit(double, id))
    const listed = async (query: string) =>
      field((await read(double, `/tasks${query}`)).json, 'result') as { task_id: string }[]
    expect((await listed('')).map((task) => task.task_id)).toEqual(ids.toReversed())
    expect((await listed('?task_type=session_commit&resource_id=a')).map((task) => task.task_id)).toEqual([
      ids[2],
      ids[0],
    ])
    expect(await listed('?limit=1')).toHaveLength(1)
    expect(await listed('?status=failed')).toEqual([])
    expect((await read(double, '/tasks?limit=500')).status).toBe(400)
    double.controls.expireTask(ids[0]!)
    expect((await read(double, `/tasks/${ids[0]!}`)).status).toBe(404)
  })

  it('a task can be cancelled by its user, not by ROOT and not twice', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    const headers = { 'x-api-key': double.controls.keys.user }
    double.controls.holdPhase2()
    await post(double, '/sessions/s/messages', say('x'), headers)
    const id = String((await post(double, '/sessions/s/commit', {}, headers)).json.result?.['task_id'])
    expect((await post(double, `/tasks/${id}/cancel`, {}, { 'x-api-key': double.controls.keys.root })).status).toBe(403)
    expect((await post(double, `/tasks/${id}/cancel`, {}, headers)).json.result?.['status']).toBe('cancelled')
    expect((await post(double, `/tasks/${id}/cancel`, {}, headers)).status).toBe(412)
  })

  it('the server commits behind the client when told so, unless the session said no', async () => {
    const double = await startDouble()
    double.controls.autoCommitOver(1)
    await post(double, '/sessions', { session_id: 'no', auto_commit_policy: null })
    for (const id of ['yes', 'no'])
      await post(double, `/sessions/${id}/messages/batch`, { messages: [say('a'), say('b')] })
    expect((await read(double, '/sessions/yes')).json.result).toMatchObject({ message_count: 0, commit_count: 1 })
    expect((await read(double, '/sessions/no')).json.result).toMatchObject({ message_count: 2, commit_count: 0 })
  })
})

describe('the OpenViking double: older servers', () => {
  it('row 27: 0.4.6 calls a no-op accepted, and does not know turn ids', async () => {
    const double = await startDouble({ profile: '0.4.6' })
    await taskEnds(double, await addAndCommit(double, 's'), 'completed')
    const noop = await post(double, '/sessions/s/commit', {})
    expect(noop.json.result).toMatchObject({ status: 'accepted', archived: false, task_id: null })
    await post(double, '/sessions/s/messages', say('x'))
    expect(field((await read(double, '/sessions/s/context')).json, 'result', 'messages', 0, 'turn_id')).toBeUndefined()
  })

  it('row 27: 0.2.8 waits by default, refuses a second commit under HTTP 200, and has no batch', async () => {
    const double = await startDouble({ profile: '0.2.8' })
    await post(double, '/sessions/s/messages', say('x'))
    expect((await post(double, '/sessions/s/commit')).json.result).toMatchObject({
      status: 'committed',
      archived: true,
    })
    expect(double.stats.extracted).toEqual({ t1: 1 })
    double.controls.holdPhase2()
    await post(double, '/sessions/s/messages', say('y', 't2'))
    const first = await post(double, '/sessions/s/commit?wait=false')
    expect(first.json.result).toMatchObject({ status: 'accepted' })
    const second = await post(double, '/sessions/s/commit?wait=false')
    expect([second.status, second.json.status, second.json.error?.code]).toEqual([200, 'error', 'CONFLICT'])
    expect((await read(double, '/sessions/s')).json.result?.['message_count']).toBe(1)
    expect((await post(double, '/sessions/s/messages/batch', { messages: [] })).json.error?.message).toBe('Not Found')
    expect((await post(double, '/sessions', { session_id: 'mine' })).json.result?.['session_id']).not.toBe('mine')
  })

  it('0.3.4 wants a session to exist, hides misses under HTTP 200, and is blocked by a failed archive', async () => {
    const double = await startDouble({ profile: '0.3.4' })
    expect((await post(double, '/sessions/s/messages', say('x'))).status).toBe(404)
    const miss = await read(double, '/sessions/s')
    expect([miss.status, miss.json.status, miss.json.error?.code]).toEqual([200, 'error', 'NOT_FOUND'])
    await post(double, '/sessions', { session_id: 's' })
    double.controls.failPhase2('model gone')
    await taskEnds(double, await addAndCommit(double, 's'), 'failed')
    await post(double, '/sessions/s/messages', say('y'))
    const blocked = await post(double, '/sessions/s/commit', {})
    expect([blocked.status, blocked.json.error?.code]).toEqual([412, 'FAILED_PRECONDITION'])
  })

  it('before the durable queue a restart leaves tasks running for ever, or forgets them', async () => {
    for (const [profile, status] of [
      ['0.4.6', 200],
      ['0.3.4', 404],
    ] as const) {
      const double = await startDouble({ profile })
      double.controls.holdPhase2()
      await post(double, '/sessions', { session_id: 's' })
      const id = await addAndCommit(double, 's')
      await double.controls.restart({ graceful: false })
      double.controls.releasePhase2()
      const task = await read(double, `/tasks/${id}`)
      expect(task.status).toBe(status)
      if (status === 200) expect(task.json.result?.['status']).toBe('running')
    }
  })
})
