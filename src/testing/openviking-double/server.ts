import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { randomUUID } from 'node:crypto'
import { identify, keyOf } from './auth.js'
import { Killed } from './commit.js'
import { internalError, invalid, isRecord, WireError, type Answer } from './envelope.js'
import type { Fault, FaultPlan } from './faults.js'
import type { World } from './model.js'
import type { Phase2 } from './phase2.js'
import { matchRoute, type Operation } from './routes.js'

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/

/** The socket side of the double: routing, faults, envelopes. A restart ends it and starts another on the same port. */
export class DoubleServer {
  readonly #world: World
  readonly #phase2: Phase2
  readonly #faults: FaultPlan
  #server: Server | undefined
  /** Raised at each restart: a call of an older life applies nothing and answers nobody. */
  #life = 0
  port = 0

  constructor(world: World, phase2: Phase2, faults: FaultPlan) {
    this.#world = world
    this.#phase2 = phase2
    this.#faults = faults
  }

  async listen(port: number): Promise<void> {
    const server = createServer((request, response) => void this.#serve(request, response))
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(port, '127.0.0.1', resolve)
    })
    this.#server = server
    this.port = (server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    this.#life += 1
    const server = this.#server
    this.#server = undefined
    if (server === undefined) return
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  async restart(graceful: boolean): Promise<void> {
    await this.stop()
    this.#phase2.restart(graceful)
    await this.listen(this.port)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const life = this.#life
    const started = performance.now()
    try {
      const answer = await this.#answer(request, () => life === this.#life)
      if (answer === undefined) response.destroy()
      else send(request, response, answer, performance.now() - started)
    } catch (error) {
      if (error instanceof Killed) {
        response.destroy()
        if (life === this.#life) await this.restart(false)
      } else {
        send(request, response, internalError().toAnswer(), performance.now() - started)
      }
    }
  }

  /** `undefined` means that the connection is dropped. */
  async #answer(request: IncomingMessage, alive: () => boolean): Promise<Answer | undefined> {
    const url = new URL(request.url ?? '/', 'http://double')
    const text = await readBody(request)
    const op = this.#operationOf(request.method ?? 'GET', url.pathname)
    this.#world.stats.requests[op] = (this.#world.stats.requests[op] ?? 0) + 1
    const fault: Fault = op === 'unknown' ? {} : this.#faults.take(op)
    try {
      return await this.#withFault(fault, alive, () => this.#apply(request, url, text, fault, alive))
    } finally {
      fault.hold?.hold.leave()
    }
  }

  async #withFault(fault: Fault, alive: () => boolean, apply: () => Promise<Answer>): Promise<Answer | undefined> {
    if (fault.drop === 'before') return undefined
    await pause(fault, 'before')
    if (!alive()) return undefined
    if (fault.answer?.at === 'before') return fault.answer.answer
    const answer = await apply()
    await pause(fault, 'after')
    if (fault.drop === 'after' || !alive()) return undefined
    return fault.answer?.at === 'after' ? fault.answer.answer : answer
  }

  #operationOf(method: string, path: string): Operation | 'unknown' {
    if (path === '/health') return 'health'
    if (path === '/ready') return 'ready'
    try {
      return matchRoute(method, path).route.op
    } catch (error) {
      if (error instanceof WireError) return 'unknown'
      throw error
    }
  }

  /** A refusal is an answer like any other: faults behind the door meet it as well. */
  async #apply(request: IncomingMessage, url: URL, text: string, fault: Fault, alive: () => boolean): Promise<Answer> {
    try {
      return await this.#route(request, url, text, fault, alive)
    } catch (error) {
      if (error instanceof WireError) return error.toAnswer()
      throw error
    }
  }

  async #route(request: IncomingMessage, url: URL, text: string, fault: Fault, alive: () => boolean): Promise<Answer> {
    if (url.pathname === '/health') return this.#health(request)
    if (url.pathname === '/ready') return this.#ready()
    const requestId = request.headers['x-request-id']
    if (typeof requestId === 'string' && !REQUEST_ID.test(requestId))
      throw invalid('header.X-Request-ID', 'Invalid request id')
    const { route, params } = matchRoute(request.method ?? 'GET', url.pathname)
    const who = identify(this.#world, request.headers, route.rootAllowed === true)
    return await route.handler({
      world: this.#world,
      phase2: this.#phase2,
      who,
      params,
      query: url.searchParams,
      body: parse(text),
      fault: fault.phase1,
      alive,
    })
  }

  /** No envelope, no authentication, 200 even with a bad key (`system.py:70-107`). */
  #health(request: IncomingMessage): Answer {
    const who = this.#world.keys.get(keyOf(request.headers) ?? '')
    const identity = who && { account_id: who.account, user_id: who.user, role: who.role }
    const { profile, authMode } = this.#world
    return {
      status: 200,
      body: { status: 'ok', healthy: true, version: profile, auth_mode: authMode, ...identity },
    }
  }

  /** 503 while initializing or when a check fails (`system.py:110-200`). */
  #ready(): Answer {
    const checks = { agfs: 'ok', vectordb: 'ok', embedding: this.#world.ready ? 'ok' : 'error' }
    return this.#world.ready
      ? { status: 200, body: { status: 'ready', checks } }
      : { status: 503, body: { status: 'not_ready', checks } }
  }
}

async function pause(fault: Fault, at: 'before' | 'after'): Promise<void> {
  const { delay, hold } = fault
  if (delay?.at === at) await new Promise((resolve) => setTimeout(resolve, delay.ms))
  if (hold?.at === at) {
    hold.hold.arrive()
    await hold.hold.opened
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of request) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw invalid('body', 'JSON decode error', 'json_invalid')
  }
}

function send(request: IncomingMessage, response: ServerResponse, answer: Answer, tookMs: number): void {
  if (response.destroyed) return
  const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body)
  const sent = request.headers['x-request-id']
  response.writeHead(answer.status, {
    'content-type': isRecord(answer.body) ? 'application/json' : 'text/html',
    'x-request-id': typeof sent === 'string' ? sent : randomUUID(),
    'x-process-time': (tookMs / 1000).toFixed(6),
    ...answer.headers,
  })
  response.end(text)
}
