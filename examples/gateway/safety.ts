import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { RequestError } from './errors.js'

export const TOKEN_HEADER = 'x-gateway-token'

const HEADERS = {
  // Everything the page needs comes from here, and nobody may frame it.
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

/**
 * A server on loopback is within reach of every web page that the user opens. Three checks, before a body is read: the
 * Host must be ours (else a foreign name was pointed at 127.0.0.1), an Origin must be ours, and whatever changes
 * something carries the token that only our own page was given.
 */
export function guardRequests(app: FastifyInstance, token: string): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS)
    const hosts = ownHosts(request.socket.localPort)
    const { host, origin } = request.headers
    if (host === undefined || !hosts.includes(host)) {
      throw new RequestError(403, 'FOREIGN_HOST', `This gateway answers as ${hosts.join(' or ')} only.`)
    }
    const isForeign = origin !== undefined && !hosts.some((own) => origin === `http://${own}`)
    if (isForeign || (request.url.startsWith('/api/') && isFromElsewhere(request.headers['sec-fetch-site']))) {
      throw new RequestError(403, 'FOREIGN_ORIGIN', 'Requests from other web pages are refused.')
    }
    if (request.method !== 'GET' && request.method !== 'HEAD' && !isSame(request.headers[TOKEN_HEADER], token)) {
      throw new RequestError(403, 'TOKEN_WRONG', `The header ${TOKEN_HEADER} must carry the token of the page.`)
    }
  })
}

/** Browsers say so even where they send no Origin, as for a picture. A link to the page itself is welcome. */
function isFromElsewhere(site: unknown): boolean {
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/** Browsers leave out the port that they would choose themselves. */
export function ownHosts(port: number | undefined): string[] {
  return ['127.0.0.1', 'localhost'].map((name) => (port === 80 ? name : `${name}:${String(port)}`))
}

function isSame(given: unknown, token: string): boolean {
  if (typeof given !== 'string') return false
  const [a, b] = [Buffer.from(given), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}
