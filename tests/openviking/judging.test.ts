import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { judge, type Reply } from '../../src/providers/openviking/outcome.js'
import { assess, carriersOf, verdictOf } from '../../src/providers/openviking/plan.js'
import { readReceipt, writeReceipt } from '../../src/providers/openviking/receipt.js'

const error = (status: number, code: string, message = '', details?: object): Reply => ({
  kind: 'answer',
  status,
  body: { status: 'error', error: { code, message, ...(details && { details }) } },
})

describe('judging an answer', () => {
  it.each<[string, Reply, object]>([
    ['success', { kind: 'answer', status: 200, body: { status: 'ok', result: 1 } }, { kind: 'ok', result: 1 }],
    ['success without null keys', { kind: 'answer', status: 200, body: { result: 1 } }, { kind: 'ok', result: 1 }],
    ['an error under HTTP 200', error(200, 'INTERNAL'), { kind: 'failed', code: 'INTERNAL' }],
    ['a commit under way, v0.2.x', error(200, 'CONFLICT'), { kind: 'failed', retryable: true, over: true }],
    ['a busy lock', error(409, 'CONFLICT', '', { retryable: true }), { kind: 'failed', retryable: true, over: true }],
    ['another conflict', error(409, 'CONFLICT'), { kind: 'failed', retryable: false }],
    ['a session that exists', error(409, 'ALREADY_EXISTS'), { kind: 'exists' }],
    ['400', error(400, 'INVALID_ARGUMENT'), { kind: 'failed', retryable: false }],
    ['401', error(401, 'UNAUTHENTICATED'), { kind: 'failed', retryable: false }],
    ['403', error(403, 'PERMISSION_DENIED'), { kind: 'failed', retryable: false }],
    ['412', error(412, 'FAILED_PRECONDITION'), { kind: 'failed', retryable: false }],
    [
      '412 of a failed archive',
      error(412, 'FAILED_PRECONDITION', 'has unresolved failed archive archive_001'),
      { kind: 'blocked' },
    ],
    ['408', error(408, 'X'), { kind: 'failed', retryable: true }],
    ['429', error(429, 'RESOURCE_EXHAUSTED'), { kind: 'failed', retryable: true, over: true }],
    ['500', error(500, 'INTERNAL'), { kind: 'failed', retryable: true, over: true }],
    ['503', error(503, 'UNAVAILABLE'), { kind: 'failed', retryable: true, over: true }],
    ['504 of the server itself', error(504, 'DEADLINE_EXCEEDED'), { kind: 'failed', retryable: true, over: true }],
    [
      '504 of a gateway',
      { kind: 'answer', status: 504, body: undefined },
      { kind: 'failed', retryable: true, over: false },
    ],
    [
      'an HTML page',
      { kind: 'answer', status: 200, body: undefined },
      { kind: 'failed', code: 'NOT_JSON', retryable: true },
    ],
    ['a JSON list', { kind: 'answer', status: 200, body: [] }, { kind: 'failed', code: 'NOT_JSON' }],
    ['an HTML 403', { kind: 'answer', status: 403, body: undefined }, { kind: 'failed', retryable: false }],
    [
      'too long',
      { kind: 'answer', status: 200, body: undefined, tooLong: true },
      { kind: 'failed', code: 'RESPONSE_TOO_LONG' },
    ],
    [
      'a redirect',
      { kind: 'redirect', status: 302, host: 'x.org' },
      { kind: 'failed', code: 'REDIRECT', where: 'x.org', retryable: true },
    ],
    [
      'no answer in time',
      { kind: 'none', sent: true, why: 'timeout' },
      { kind: 'failed', over: false, code: 'TIMEOUT' },
    ],
    [
      'refused connection',
      { kind: 'none', sent: false, why: 'network', code: 'ECONNREFUSED' },
      { over: true, retryable: true },
    ],
    ['aborted', { kind: 'none', sent: true, why: 'aborted' }, { aborted: true, over: false }],
    [
      'a session miss, raised',
      error(404, 'NOT_FOUND', 'Session not found: a', { type: 'session' }),
      { what: 'session' },
    ],
    ['a session miss, returned', error(404, 'NOT_FOUND', 'Session a not found'), { what: 'session' }],
    ['a session miss under HTTP 200', error(200, 'NOT_FOUND', 'Session a not found'), { what: 'session' }],
    ['a task miss', error(404, 'NOT_FOUND', 'x', { type: 'task' }), { what: 'task' }],
    ['an unknown route', error(404, 'NOT_FOUND', 'Not Found'), { what: 'route' }],
    ['a wrong method', error(405, 'UNKNOWN', 'Method Not Allowed'), { what: 'route' }],
    ['a 404 made of an exception', error(404, 'NOT_FOUND', 'file does not exist'), { kind: 'missing', what: 'other' }],
  ])('point 7: %s', (_name, reply, expected) => {
    expect(judge(reply)).toMatchObject(expected)
  })

  it('point 7: names the refused field and never repeats the words of the server', () => {
    const details = { validation_errors: [{ loc: 'body.messages.0.peer_id', message: 'my secret', type: 'x' }] }
    const outcome = judge(error(400, 'INVALID_ARGUMENT', 'my secret', details))
    expect(outcome).toMatchObject({ where: 'body.messages.0.peer_id' })
    expect(JSON.stringify(outcome)).not.toContain('secret')
    expect(JSON.stringify(judge(error(400, 'my secret')))).not.toContain('secret')
  })

  it('takes anything for an answer without throwing', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 599 }), fc.jsonValue(), (status, body) => {
        expect(judge({ kind: 'answer', status, body }).kind).toMatch(/ok|missing|exists|blocked|failed/)
      }),
    )
  })
})

describe('what an earlier attempt left', () => {
  const open = { id: 'a', state: 'open' } as const
  const failed = { id: 'b', state: 'failed' } as const
  const done = { id: 'c', state: 'completed' } as const

  it.each([
    ['nothing added yet', { live: 0, total: 0, commits: 0 }, [], 'partial'],
    ['a part', { live: 2, total: 2, commits: 0 }, [], 'partial'],
    ['all of it', { live: 4, total: 4, commits: 0 }, [], 'full'],
    ['all of it after a fault before the rewrite', { live: 4, total: 4, commits: 0 }, [failed], 'full'],
    ['more than all', { live: 5, total: 5, commits: 0 }, [], 'spoilt'],
    ['committed', { live: 0, total: 4, commits: 1 }, [open], 'landed'],
    ['a fault after the rewrite: the count is old', { live: 0, total: 4, commits: 0 }, [failed], 'landed'],
    ['the server committed a part by itself', { live: 0, total: 3, commits: 1 }, [done], 'partial-archived'],
    ['without totals: all of it', { live: 4, total: undefined, commits: 0 }, [], 'full'],
    ['without totals: created only', { live: 0, total: undefined, commits: 0 }, [], 'partial'],
    ['without totals: a fault after the rewrite', { live: 0, total: undefined, commits: 0 }, [failed], 'landed'],
    ['without counts: under way', { live: 4, total: undefined, commits: undefined }, [open], 'landed'],
    ['without counts: failed, messages kept', { live: 4, total: undefined, commits: undefined }, [failed], 'full'],
    ['without counts: over and forgotten', { live: 0, total: undefined, commits: undefined }, [], 'landed'],
  ] as const)('point 3: %s', (_name, view, tasks, found) => {
    expect(assess(view, 4, tasks)).toBe(found)
  })

  it('never takes a session with too few or too many messages for full', () => {
    const count = fc.nat(6)
    fc.assert(
      fc.property(
        count,
        fc.option(count, { nil: undefined }),
        fc.option(count, { nil: undefined }),
        (live, total, commits) => {
          const found = assess({ live, total, commits }, 4, [])
          if (found === 'full') expect(total ?? live).toBe(4)
          if ((total ?? live) > 4) expect(found).toBe('spoilt')
        },
      ),
    )
  })

  it('several tasks: one open keeps it open, a failed one among finished ones is looked into', () => {
    expect(verdictOf([])).toBe('unlisted')
    expect(verdictOf([open, failed])).toBe('open')
    expect(verdictOf([done])).toBe('completed')
    expect(verdictOf([failed, failed])).toBe('failed')
    expect(verdictOf([failed, done])).toBe('mixed')
    expect(carriersOf([failed, done, open])).toEqual([done, open])
    expect(carriersOf([failed, { ...failed, id: 'older' }])).toEqual([failed])
  })
})

describe('receipts', () => {
  const receipt = { session: 'tm-1-0', givenUp: [], messages: 2, tasks: ['t'], archive: 'archive_001' }

  it('come back as they went', () => {
    expect(readReceipt(writeReceipt(receipt))).toEqual(receipt)
  })

  it.each(['', 'null', '{}', '{"v":1}', '{"v":1,"session":"a","messages":1,"archive":"b","tasks":[1],"givenUp":[]}'])(
    'refuses %j with a clear word',
    (text) => {
      expect(() => readReceipt(text)).toThrow(expect.objectContaining({ code: 'CORRUPT' }))
    },
  )

  it('of a newer version are refused as newer', () => {
    expect(() => readReceipt('{"v":2}')).toThrow(expect.objectContaining({ code: 'FILE_NEWER' }))
  })
})
