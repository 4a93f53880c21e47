import type { IncomingHttpHeaders } from 'node:http'
import { invalid, WireError } from './envelope.js'
import type { Identity, World } from './model.js'

const NAME = /^[a-zA-Z0-9_.@-]+$/

/** `core/identifiers.py:8-50`: at most one `@`, no `.` or `..`; an account does not start with `_`. */
export function checkName(kind: 'account' | 'user' | 'peer_id', value: string): string {
  const bad =
    !NAME.test(value) ||
    value === '.' ||
    value === '..' ||
    value.split('@').length > 2 ||
    (kind === 'account' && value.startsWith('_'))
  if (bad) throw new WireError(400, 'INVALID_ARGUMENT', `Invalid ${kind}`)
  return value
}

function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** `X-API-Key`, else a bearer token (`server/auth/__init__.py:42-51`). */
export function keyOf(headers: IncomingHttpHeaders): string | undefined {
  const bearer = header(headers, 'authorization')
  return header(headers, 'x-api-key') ?? (bearer?.startsWith('Bearer ') === true ? bearer.slice(7) : undefined)
}

/**
 * Who is calling: `server/auth/plugins/dev.py:31-44`, `api_key.py:21-41,68-105,267-281`, `trusted.py:90-178,228-240`.
 * The header identity is ignored in api_key mode; the root key may not use session and search routes there.
 */
export function identify(world: World, headers: IncomingHttpHeaders, rootAllowed: boolean): Identity {
  const account = header(headers, 'x-openviking-account')
  const user = header(headers, 'x-openviking-user')
  switch (world.authMode) {
    case 'dev':
      return {
        account: checkName('account', account ?? 'default'),
        user: checkName('user', user ?? 'default'),
        role: 'root',
      }
    case 'api_key': {
      const who = world.keys.get(keyOf(headers) ?? '')
      if (who === undefined) throw new WireError(401, 'UNAUTHENTICATED', 'Missing or invalid API key')
      if (who.role === 'root' && !rootAllowed)
        throw new WireError(403, 'PERMISSION_DENIED', 'ROOT cannot access tenant-scoped APIs')
      return who
    }
    case 'trusted': {
      if (account === undefined || user === undefined)
        throw invalid('header', 'X-OpenViking-Account and X-OpenViking-User are required')
      if (world.keys.get(keyOf(headers) ?? '')?.role !== 'root')
        throw new WireError(401, 'UNAUTHENTICATED', 'Missing or invalid API key')
      return { account: checkName('account', account), user: checkName('user', user), role: 'user' }
    }
  }
}
