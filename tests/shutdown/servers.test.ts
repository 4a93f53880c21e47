import { Agent, createServer, get, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { gracefulShutdown } from '../../src/shutdown/index.js'
import { latch } from '../pool/support.js'
import { openLifecycle } from '../support/lifecycle.js'

const servers: Server[] = []
const agents: Agent[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
  for (const agent of agents.splice(0)) agent.destroy()
})

async function listen(listener: RequestListener): Promise<{ server: Server; port: number; agent: Agent }> {
  const server = createServer(listener)
  const agent = new Agent({ keepAlive: true })
  servers.push(server)
  agents.push(agent)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { server, agent, port: (server.address() as AddressInfo).port }
}

const ask = (port: number, agent: Agent): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent }, resolve).on('error', reject)
  })

async function textOf(response: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return text
}

test('a server stops accepting at once, and a request that is running is answered before anything is drained', async () => {
  const { lifecycle } = await openLifecycle()
  const [arrived, answer] = [latch(), latch()]
  const order: string[] = []
  const { server, port, agent } = await listen((_request, response) => {
    arrived.open()
    void answer.opened.then(() => response.end('the answer', () => order.push('answered')))
  })
  // A client that keeps its connection for ever must not hold up the end.
  server.keepAliveTimeout = 0
  lifecycle.on('drain:started', () => order.push('drained'))
  const asked = ask(port, agent).then(textOf)
  await arrived.opened
  const handle = gracefulShutdown({ lifecycle, servers: [server], signals: [] })
  const ended = handle.shutdown()
  await expect(ask(port, new Agent())).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  expect(order).toEqual([])
  answer.open()
  expect(await asked).toBe('the answer')
  const report = await ended
  expect(order).toEqual(['answered', 'drained'])
  expect(report).toMatchObject({ exitCode: 0 })
  expect(report.steps.filter(({ step }) => step === 'turns' || step === 'connections')).toMatchObject([
    { status: 'done' },
    { status: 'done' },
  ])
})

test('an event stream that carries no turn is cut once the turns have ended', async () => {
  const { lifecycle } = await openLifecycle()
  const { server, port, agent } = await listen((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: hello\n\n')
  })
  const stream = await ask(port, agent)
  const cut = new Promise<void>((resolve) => stream.once('error', () => resolve()).once('close', () => resolve()))
  stream.resume()
  const report = await gracefulShutdown({
    ...{ lifecycle, servers: [server], signals: [], deadlineMs: 2_000 },
    waitForTurns: () => Promise.resolve(),
  }).shutdown()
  await cut
  expect(report).toMatchObject({ exitCode: 0 })
  expect(report.steps.find(({ step }) => step === 'connections')?.status).toBe('left')
})

test('a server that is not listening is closed already', async () => {
  const { lifecycle } = await openLifecycle()
  const report = await gracefulShutdown({ lifecycle, servers: [createServer()], signals: [] }).shutdown()
  expect(report.exitCode).toBe(0)
})

test('a server whose close gives a promise is waited for', async () => {
  const { lifecycle } = await openLifecycle()
  const server = { close: () => Promise.reject(new Error('stuck')) }
  const report = await gracefulShutdown({ lifecycle, servers: [server], signals: [] }).shutdown()
  expect(report.steps.find(({ step }) => step === 'turns')?.status).toBe('failed')
  expect(report.exitCode).toBe(1)
})
