import type { Settings } from './options.js'
import { isRecord, type Reply } from './outcome.js'
import { underSignals } from './signals.js'

export interface WireRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Below the endpoint, with its query. */
  readonly path: string
  readonly body?: unknown
  readonly timeoutMs: number
  readonly signal?: AbortSignal | undefined
  readonly headers?: Readonly<Record<string, string>>
}

const MAX_REDIRECTS = 3

/** Errors that arise before a byte of the request is on its way. */
const NEVER_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** One request with a limit of time and a limit of size. It does not throw: what happened is a value to be judged. */
export async function send(settings: Settings, request: WireRequest): Promise<Reply> {
  const timeout = new AbortController()
  const stopTimer = settings.clock.setTimer(() => timeout.abort(), request.timeoutMs, { keepAlive: true })
  try {
    return await underSignals([timeout.signal, request.signal], (signal) => follow(settings, request, signal))
  } catch (error) {
    if (request.signal?.aborted === true) return { kind: 'none', sent: true, why: 'aborted' }
    if (timeout.signal.aborted) return { kind: 'none', sent: true, why: 'timeout' }
    const code = networkCode(error)
    return { kind: 'none', sent: !NEVER_SENT.has(code), why: 'network', code }
  } finally {
    stopTimer()
  }
}

async function follow(settings: Settings, request: WireRequest, signal: AbortSignal): Promise<Reply> {
  let url = new URL(settings.endpoint.href.replace(/\/$/, '') + request.path)
  const body = request.body === undefined ? undefined : JSON.stringify(request.body)
  for (let hops = 0; ; hops += 1) {
    const response = await fetch(url, {
      method: request.method,
      headers: { ...headersOf(settings, body !== undefined), ...request.headers },
      ...(body !== undefined && { body }),
      signal,
      // By hand, because the key must not go to another host, and a POST must stay one.
      redirect: 'manual',
    })
    if (response.status < 300 || response.status >= 400) return readAnswer(response, settings.maxResponseBytes)
    await response.body?.cancel()
    const location = response.headers.get('location') ?? ''
    const target = URL.canParse(location, url.href) ? new URL(location, url) : undefined
    const repeats = request.method === 'GET' || response.status === 307 || response.status === 308
    if (target === undefined || target.origin !== settings.endpoint.origin || !repeats || hops >= MAX_REDIRECTS)
      return { kind: 'redirect', status: response.status, host: target?.host ?? 'nowhere' }
    url = target
  }
}

function headersOf(settings: Settings, hasBody: boolean): Record<string, string> {
  const { apiKey, account, user } = settings
  return {
    accept: 'application/json',
    ...(hasBody && { 'content-type': 'application/json' }),
    ...(apiKey !== undefined && { 'x-api-key': apiKey }),
    ...(account !== undefined && { 'x-openviking-account': account }),
    ...(user !== undefined && { 'x-openviking-user': user }),
  }
}

async function readAnswer(response: Response, maxBytes: number): Promise<Reply> {
  const chunks: Uint8Array[] = []
  let size = 0
  // Leaving the loop early cancels the body, so the rest is never read.
  for await (const chunk of response.body ?? []) {
    size += (chunk as Uint8Array).byteLength
    if (size > maxBytes) return { kind: 'answer', status: response.status, body: undefined, tooLong: true }
    chunks.push(chunk as Uint8Array)
  }
  return { kind: 'answer', status: response.status, body: parseJson(Buffer.concat(chunks).toString('utf8')) }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    // Whatever it was, it was no answer of this API; the judge says so.
    return undefined
  }
}

function networkCode(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined
  const code = isRecord(cause) || cause instanceof Error ? (cause as { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : 'NETWORK'
}
