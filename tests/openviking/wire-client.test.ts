import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { OpenVikingProvider } from '../../src/providers/openviking/index.js'
import { makeCommit, makeProvider, makeTurns } from './driver.js'
import { startDouble } from './wire.js'

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const make = (endpoint: string, more: object = {}) =>
  new OpenVikingProvider({ endpoint, apiKey: 'top-secret-key', ...more })

describe('the wire client', () => {
  it('never sends anything to the host a redirect points to, and says where it led', async () => {
    const seen: string[] = []
    const elsewhere = await listen((request, response) => {
      seen.push(request.url ?? '')
      response.end('{}')
    })
    const server = await listen((_request, response) =>
      response.writeHead(307, { location: `${elsewhere}/steal` }).end(),
    )
    const error = await make(server)
      .recall('x')
      .catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      code: 'PROVIDER_FAILED',
      retryable: true,
      details: { where: new URL(elsewhere).host },
    })
    expect(seen).toEqual([])
  })

  it('follows a redirect on its own host, as a POST with its body and key', async () => {
    const seen: string[] = []
    const server = await listen((request, response) => {
      seen.push(`${request.method ?? ''} ${request.url ?? ''} ${String(request.headers['x-api-key'])}`)
      if (request.url?.endsWith('/find') === true) response.writeHead(308, { location: '/moved' }).end()
      else response.end('{"status":"ok","result":{"memories":[{"abstract":"tea"}]}}')
    })
    expect(await make(server).recall('x')).toContain('tea')
    expect(seen).toEqual(['POST /api/v1/search/find top-secret-key', 'POST /moved top-secret-key'])
  })

  it('does not follow in circles', async () => {
    let hits = 0
    const server = await listen((_request, response) => {
      hits += 1
      response.writeHead(308, { location: '/again' }).end()
    })
    await expect(make(server).recall('x')).rejects.toMatchObject({ details: { code: 'REDIRECT' } })
    expect(hits).toBe(4)
  })

  it('stops reading an answer that is too long', async () => {
    let written = 0
    const server = await listen((_request, response) => {
      response.writeHead(200)
      const more = (): void => {
        while (!response.destroyed && written < 50_000_000) {
          written += 65_536
          if (!response.write('x'.repeat(65_536))) {
            response.once('drain', more)
            return
          }
        }
      }
      more()
    })
    const provider = make(server, { maxResponseBytes: 100_000 })
    await expect(provider.recall('x')).rejects.toMatchObject({ details: { code: 'RESPONSE_TOO_LONG' } })
    expect(written).toBeLessThan(50_000_000)
  })

  it('gives up at the limit of time, also in the middle of a body', async () => {
    const server = await listen((_request, response) => void response.writeHead(200).write('{'))
    await expect(make(server, { readTimeoutMs: 50 }).recall('x')).rejects.toMatchObject({
      details: { code: 'TIMEOUT' },
    })
  })

  it('reports a server that is not there, without the key', async () => {
    const free = createServer()
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
    const { port } = free.address() as AddressInfo
    await new Promise((resolve) => free.close(resolve))
    const gone = make(`http://127.0.0.1:${port}`)
    const error: unknown = await gone.recall('x').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'PROVIDER_FAILED', retryable: true, details: { code: 'ECONNREFUSED' } })
    expect(await gone.health()).toEqual({ status: 'unreachable', reason: 'ECONNREFUSED' })
    expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain('secret')
  })

  it('keeps a path before the API', async () => {
    const seen: string[] = []
    const server = await listen((request, response) => {
      seen.push(request.url ?? '')
      response.end('{"status":"ok","result":{}}')
    })
    await make(`${server}/viking/`).recall('x')
    expect(seen).toEqual(['/viking/api/v1/search/find'])
  })
})

describe('options', () => {
  const url = 'http://127.0.0.1:1'
  it.each([
    [{ endpoint: 'nonsense' }, /http\(s\) URL/],
    [{ endpoint: 'ftp://x' }, /http\(s\) URL/],
    [{ endpoint: 'http://u:p@x' }, /apiKey/],
    [{ endpoint: url, apiKey: 'a\nb' }, /printable/],
    [{ endpoint: url, apiKey: '' }, /printable/],
    [{ endpoint: url, account: 'a' }, /belong together/],
    [{ endpoint: url, account: '_a', user: 'b' }, /leading _/],
    [{ endpoint: url, peer: 'a b' }, /peer must match/],
    [{ endpoint: url, peer: '..' }, /peer must match/],
    [{ endpoint: url, peer: 'a@b@c' }, /peer must match/],
    [{ endpoint: url, readTimeoutMs: 0 }, /readTimeoutMs/],
    [{ endpoint: url, writeTimeoutMs: 1.5 }, /writeTimeoutMs/],
    [{ endpoint: url, maxResponseBytes: 1 }, /maxResponseBytes/],
    [{ endpoint: url, cleanWhen: 'soon' as 'accepted' }, /cleanWhen/],
  ])('refuses %j before anything happens', (options, message) => {
    expect(() => new OpenVikingProvider(options)).toThrow(message)
    expect(() => new OpenVikingProvider(options)).toThrow(TypeError)
  })

  it('never repeats the key, in no error and no description of the provider', async () => {
    const { inspect } = await import('node:util')
    const provider = make(url)
    expect(inspect(provider, { depth: 9, showHidden: true }) + JSON.stringify(provider)).not.toContain('secret')
    expect(() => make(url, { apiKey: 'top-secret\n' })).not.toThrow(/secret/)
  })
})

describe('health and close', () => {
  it('point 10: asks /health, not /ready', async () => {
    const double = await startDouble({ authMode: 'api_key' })
    double.controls.setReady(false)
    expect(await makeProvider(double).health()).toEqual({ status: 'ok', version: '0.4.16', authMode: 'api_key' })
    expect(double.stats.requests).toEqual({ health: 1 })
    double.controls.answerNext('health', { status: 503, body: '<html>' })
    expect(await makeProvider(double).health()).toEqual({ status: 'unreachable', reason: 'NOT_JSON' })
  })

  it('close ends what is under way and refuses what comes later', async () => {
    const double = await startDouble()
    const provider = makeProvider(double)
    const gate = double.controls.gate('get', 'before')
    const running = Promise.resolve(provider.agent('s').commitMemorySession(makeCommit(makeTurns(1), 'k')))
    const ended = expect(running).rejects.toMatchObject({ code: 'ABORTED', retryable: true })
    await gate.reached
    await provider.close()
    await ended
    gate.release()
    await expect(provider.recall('x')).rejects.toMatchObject({ code: 'CLOSED' })
    await provider.close()
  })
})
