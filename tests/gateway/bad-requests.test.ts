import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ownHosts } from '../../examples/gateway/safety.js'
import { sendRaw } from './support/client.js'
import { type InProcess, startInProcess } from './support/in-process.js'

interface BadRequest {
  readonly name: string
  readonly method?: string
  readonly path: string
  /** Instead of what the page would send; `undefined` leaves a header out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: string
  readonly status: number
  readonly code?: string
}

const JSON_BODY = (value: unknown): string => JSON.stringify(value)
const LONG = 'a'.repeat(129)

/** `:id` stands for a chat that exists. */
const TABLE: readonly BadRequest[] = [
  // Whoever asks
  {
    name: 'a foreign Host',
    path: '/api/sessions',
    headers: { host: 'evil.example' },
    status: 403,
    code: 'FOREIGN_HOST',
  },
  { name: 'the right host at a wrong port', path: '/', headers: { host: '127.0.0.1:1' }, status: 403 },
  { name: 'a foreign Host for the page', path: '/', headers: { host: 'evil.example:80' }, status: 403 },
  { name: 'a foreign Host at an unknown address', path: '/x', headers: { host: 'evil.example' }, status: 403 },
  {
    name: 'a foreign Origin',
    path: '/api/sessions',
    headers: { origin: 'https://evil.example' },
    status: 403,
    code: 'FOREIGN_ORIGIN',
  },
  {
    name: 'a picture on a foreign page',
    path: '/api/events',
    headers: { 'sec-fetch-site': 'cross-site' },
    status: 403,
    code: 'FOREIGN_ORIGIN',
  },
  { name: 'a page at another port', path: '/api/sessions', headers: { 'sec-fetch-site': 'same-site' }, status: 403 },
  {
    name: 'an opaque Origin',
    method: 'POST',
    path: '/api/sessions',
    headers: { origin: 'null' },
    body: '{}',
    status: 403,
  },
  {
    name: 'no token',
    method: 'POST',
    path: '/api/sessions',
    headers: { 'x-gateway-token': undefined },
    body: '{}',
    status: 403,
    code: 'TOKEN_WRONG',
  },
  {
    name: 'a wrong token',
    method: 'POST',
    path: '/api/sessions/:id/undo',
    headers: { 'x-gateway-token': 'x'.repeat(32) },
    status: 403,
  },
  {
    name: 'a wrong token at DELETE',
    method: 'DELETE',
    path: '/api/memory/facts/1',
    headers: { 'x-gateway-token': '' },
    status: 403,
  },
  {
    name: 'no token at an unknown address',
    method: 'PUT',
    path: '/x',
    headers: { 'x-gateway-token': undefined },
    status: 403,
  },
  // Bodies
  {
    name: 'an oversized body',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    body: JSON_BODY({ text: 'a'.repeat(70_000) }),
    status: 413,
  },
  {
    name: 'a text that is too long',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    body: JSON_BODY({ text: 'a'.repeat(16_001) }),
    status: 400,
    code: 'BAD_REQUEST',
  },
  { name: 'half a JSON', method: 'POST', path: '/api/sessions/:id/turns', body: '{"text":', status: 400 },
  { name: 'no body', method: 'POST', path: '/api/sessions/:id/turns', status: 400 },
  { name: 'an empty body', method: 'POST', path: '/api/sessions/:id/turns', body: '', status: 400 },
  {
    name: 'a body that is not JSON',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    headers: { 'content-type': 'text/plain' },
    body: 'hi',
    status: 415,
  },
  {
    name: 'a form',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'text=hi',
    status: 415,
  },
  { name: 'an array', method: 'POST', path: '/api/sessions/:id/turns', body: '[]', status: 400 },
  { name: 'null', method: 'POST', path: '/api/sessions/:id/turns', body: 'null', status: 400 },
  { name: 'no text', method: 'POST', path: '/api/sessions/:id/turns', body: '{}', status: 400 },
  { name: 'a number for a text', method: 'POST', path: '/api/sessions/:id/turns', body: '{"text":5}', status: 400 },
  {
    name: 'nothing but blanks',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    body: JSON_BODY({ text: ' \n\t ' }),
    status: 400,
  },
  {
    name: 'a field that nobody knows',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    body: JSON_BODY({ text: 'a', role: 'system' }),
    status: 400,
  },
  {
    name: 'a poisoned prototype',
    method: 'POST',
    path: '/api/sessions/:id/turns',
    body: '{"text":"a","__proto__":{"x":1}}',
    status: 400,
  },
  {
    name: 'a previous chat of a wrong type',
    method: 'POST',
    path: '/api/sessions',
    body: '{"previousId":7}',
    status: 400,
  },
  // Ids
  { name: 'an unknown chat', path: '/api/sessions/nobody', status: 404, code: 'NOT_FOUND' },
  {
    name: 'a turn in an unknown chat',
    method: 'POST',
    path: '/api/sessions/nobody/turns',
    body: '{"text":"a"}',
    status: 404,
    code: 'NOT_FOUND',
  },
  { name: 'an undo in an unknown chat', method: 'POST', path: '/api/sessions/nobody/undo', status: 404 },
  {
    name: 'an unknown previous chat',
    method: 'POST',
    path: '/api/sessions',
    body: '{"previousId":"nobody"}',
    status: 404,
  },
  { name: 'an unknown answer', path: '/api/sessions/:id/runs/nobody/events', status: 404 },
  { name: 'an answer in an unknown chat', path: '/api/sessions/nobody/runs/nobody/events', status: 404 },
  { name: 'an answer that does not run', method: 'POST', path: '/api/sessions/:id/runs/nobody/cancel', status: 404 },
  { name: 'an unknown fact', method: 'DELETE', path: '/api/memory/facts/999', status: 404 },
  { name: 'a fact that is no number', method: 'DELETE', path: '/api/memory/facts/one', status: 400 },
  { name: 'an id with a blank', path: '/api/sessions/a%20b', status: 400 },
  { name: 'an id that is too long', path: `/api/sessions/${LONG}`, status: 400 },
  { name: 'a cursor that is no number', path: '/api/sessions/:id/runs/nobody/events?after=-1', status: 400 },
  {
    name: 'a previous chat that is a path',
    method: 'POST',
    path: '/api/sessions',
    body: '{"previousId":"../../etc"}',
    status: 400,
  },
  // Path tricks
  { name: 'a chat called ..', path: '/api/sessions/..', status: 400 },
  { name: 'a chat called .. in disguise', path: '/api/sessions/%2e%2e', status: 400 },
  { name: 'an escaped slash', path: '/api/sessions/..%2f..%2fetc%2fpasswd', status: 400 },
  { name: 'an escaped backslash', path: '/api/sessions/..%5c..%5cx', status: 400 },
  { name: 'an escaped NUL', path: '/api/sessions/a%00b', status: 400 },
  { name: 'a file of the example', path: '/../main.ts', status: 404 },
  { name: 'a file of the system', path: '/../../../../etc/passwd', status: 404 },
  { name: 'a file of the system in disguise', path: '/%2e%2e/%2e%2e/etc/passwd', status: 404 },
  { name: 'the kept state', path: '/.tidemark/ledger.sqlite', status: 404 },
  { name: 'a broken escape', path: '/api/sessions/%zz', status: 400 },
  // Addresses and methods
  { name: 'an unknown address', path: '/nowhere', status: 404, code: 'NOT_FOUND' },
  { name: 'a method that is not there', method: 'PUT', path: '/api/sessions', body: '{}', status: 404 },
  { name: 'TRACE', method: 'TRACE', path: '/api/sessions', status: 404 },
]

/** Names and contents of everything that is kept, without SQLite's own scratch files. */
async function snapshot(directory: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const name of await readdir(directory, { recursive: true })) {
    const path = join(directory, name)
    if (!(await stat(path)).isFile() || /-(?:wal|shm)$|lock\.sqlite/.test(name)) continue
    files[name] = createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  }
  return files
}

async function send({ client }: InProcess, id: string, request: BadRequest) {
  const { method = 'GET', path, body } = request
  const usual = { host: new URL(client.url).host, 'x-gateway-token': client.token }
  const typed = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': String(body.length) }
  const headers: Record<string, string> = { ...usual, ...typed }
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    if (value === undefined) Reflect.deleteProperty(headers, name)
    else headers[name] = value
  }
  return sendRaw(client.url, {
    method,
    path: path.replace(':id', id),
    headers,
    ...(body === undefined ? {} : { body }),
  })
}

describe('a bad request', () => {
  test('is answered with its status and a JSON error, without a stack trace, and writes nothing', async () => {
    const started = await startInProcess()
    const { client, directory, logger, gateway } = started
    const id = await client.newChat()
    await client.ask(id, 'count to 3')
    const before = {
      files: await snapshot(directory),
      chat: await client.chat(id),
      health: await gateway.lifecycle.inspect(id),
    }
    const wrong: string[] = []
    for (const request of TABLE) {
      const { status, text } = await send(started, id, request)
      const problem = problemOf(request, status, text)
      if (problem !== undefined) wrong.push(`${request.name}: ${problem}`)
    }
    expect(wrong).toEqual([])
    expect(await snapshot(directory)).toEqual(before.files)
    expect(await client.chat(id)).toEqual(before.chat)
    expect(await gateway.lifecycle.inspect(id)).toEqual(before.health)
    // What others do wrong is no event for the log.
    expect(logger.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('of somebody who sends too much is refused before all of it is read', async () => {
    const started = await startInProcess()
    const { client } = started
    const id = await client.newChat()
    const { status } = await sendRaw(client.url, {
      method: 'POST',
      path: `/api/sessions/${id}/turns`,
      headers: {
        'x-gateway-token': client.token,
        host: new URL(client.url).host,
        'content-type': 'application/json',
        'content-length': String(50 * 1024 * 1024),
      },
    })
    expect(status).toBe(413)
  })
})

function problemOf(request: BadRequest, status: number, text: string): string | undefined {
  if (status !== request.status) return `expected ${request.status}, got ${status} ${text.slice(0, 120)}`
  const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } }
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return `not an error: ${text}`
  if (request.code !== undefined && error.code !== request.code) return `expected ${request.code}, got ${error.code}`
  return /\bat .*\(|node_modules|\.ts:|file:\/\/|\/tmp/.test(text) ? `shows too much: ${text}` : undefined
}

describe('every answer', () => {
  test.each(['/', '/app.js', '/api/sessions', '/nowhere'])(
    '%s carries the headers that keep foreign pages out',
    async (path) => {
      const { client } = await startInProcess()
      const { headers } = await sendRaw(client.url, {
        method: 'GET',
        path,
        headers: { host: new URL(client.url).host },
      })
      expect(headers).toMatchObject({
        'content-security-policy': expect.stringContaining("default-src 'none'; script-src 'self'") as string,
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
      })
      expect(headers['access-control-allow-origin']).toBeUndefined()
      expect(headers['content-security-policy']).not.toMatch(/https?:|unsafe|\*/)
    },
  )

  test('is reachable as localhost as well', async () => {
    const { client } = await startInProcess()
    const { port } = new URL(client.url)
    const answer = await sendRaw(client.url, {
      method: 'GET',
      path: '/api/sessions',
      headers: { host: `localhost:${port}` },
    })
    expect(answer.status).toBe(200)
  })
})

test('on port 80 a browser names no port', () => {
  expect(ownHosts(80)).toEqual(['127.0.0.1', 'localhost'])
  expect(ownHosts(4747)).toEqual(['127.0.0.1:4747', 'localhost:4747'])
})

test('the state of the gateway is private to its user', async () => {
  const { directory } = await startInProcess()
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
})
