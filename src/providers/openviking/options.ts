import { systemClock, type Clock } from '../../base/clock.js'
import { silentLogger, type Logger } from '../../base/logger.js'

export interface OpenVikingOptions {
  /** Where the server listens, for example `http://127.0.0.1:1933`; a path before `/api/v1` is kept. */
  readonly endpoint: string
  /** Sent as `X-API-Key`, to this endpoint's origin only. Not needed in dev mode. */
  readonly apiKey?: string
  /** For servers in trusted mode: the tenant, with `user`. */
  readonly account?: string
  readonly user?: string
  /** Who speaks in the user messages: their `peer_id`, and the view that `recall` has. */
  readonly peer?: string
  /** When a segment counts as done: its task is `completed`, or the server has durably accepted it. @default 'extracted' */
  readonly cleanWhen?: 'accepted' | 'extracted'
  /** Limit of one reading request. @default 10_000 */
  readonly readTimeoutMs?: number
  /** Limit of one writing request; the server itself waits up to 30 s for a lock. @default 40_000 */
  readonly writeTimeoutMs?: number
  /** A longer answer is not read to its end. @default 16 MiB */
  readonly maxResponseBytes?: number
  /** How long one settlement watches the task before it says `pending`. @default 5_000 */
  readonly settlePollMs?: number
  /** @default a silent one */
  readonly logger?: Logger
  readonly clock?: Clock
}

export interface Settings {
  readonly endpoint: URL
  readonly apiKey: string | undefined
  readonly account: string | undefined
  readonly user: string | undefined
  readonly peer: string | undefined
  readonly cleanWhen: 'accepted' | 'extracted'
  readonly readTimeoutMs: number
  readonly writeTimeoutMs: number
  readonly maxResponseBytes: number
  readonly settlePollMs: number
  readonly logger: Logger
  readonly clock: Clock
}

const defaults = Object.freeze({
  cleanWhen: 'extracted',
  readTimeoutMs: 10_000,
  writeTimeoutMs: 40_000,
  maxResponseBytes: 16 * 1024 * 1024,
  settlePollMs: 5_000,
})

/** Nonsense is refused here, before any effect, and without repeating a credential. */
export function readOptions(options: OpenVikingOptions): Settings {
  const settings: Settings = {
    endpoint: readEndpoint(options.endpoint),
    apiKey: readKey(options.apiKey),
    account: readName('account', options.account),
    user: readName('user', options.user),
    peer: readName('peer', options.peer),
    cleanWhen: options.cleanWhen ?? defaults.cleanWhen,
    readTimeoutMs: readNumber('readTimeoutMs', options.readTimeoutMs ?? defaults.readTimeoutMs, 1),
    writeTimeoutMs: readNumber('writeTimeoutMs', options.writeTimeoutMs ?? defaults.writeTimeoutMs, 1),
    maxResponseBytes: readNumber('maxResponseBytes', options.maxResponseBytes ?? defaults.maxResponseBytes, 1024),
    settlePollMs: readNumber('settlePollMs', options.settlePollMs ?? defaults.settlePollMs, 0),
    logger: options.logger ?? silentLogger,
    clock: options.clock ?? systemClock,
  }
  if (!['accepted', 'extracted'].includes(settings.cleanWhen))
    throw new TypeError(`cleanWhen must be 'accepted' or 'extracted', not ${JSON.stringify(settings.cleanWhen)}`)
  if ((settings.account === undefined) !== (settings.user === undefined))
    throw new TypeError('account and user belong together: give both (trusted mode) or neither')
  return Object.freeze(settings)
}

function readEndpoint(value: unknown): URL {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new TypeError("endpoint must be an http(s) URL, for example 'http://127.0.0.1:1933'")
  if (url.username !== '' || url.password !== '')
    throw new TypeError('endpoint must not carry a user name or password: use apiKey')
  url.search = ''
  url.hash = ''
  url.pathname = url.pathname.replace(/\/+$/, '')
  return url
}

function readKey(value: unknown): string | undefined {
  if (value === undefined) return undefined
  // What a header cannot carry; the value itself is never repeated.
  if (typeof value !== 'string' || !/^[\x21-\x7e]+$/.test(value))
    throw new TypeError('apiKey must be a non-empty string of printable ASCII characters without spaces')
  return value
}

/** The server's own rule for these names. */
function readName(name: string, value: unknown): string | undefined {
  if (value === undefined) return undefined
  const good = typeof value === 'string' && /^(?!\.{1,2}$)[a-zA-Z0-9_.-]*@?[a-zA-Z0-9_.-]*$/.test(value) && value !== ''
  if (!good || (name === 'account' && value.startsWith('_')))
    throw new TypeError(
      `${name} must match [a-zA-Z0-9_.@-]+ with at most one @${name === 'account' ? ' and no leading _' : ''}`,
    )
  return value
}

function readNumber(name: string, value: unknown, least: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < least)
    throw new TypeError(`${name} must be a whole number of at least ${least}, not ${String(value)}`)
  return value
}
