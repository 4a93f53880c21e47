/** What came back from the network, before anybody judged it. */
export type Reply =
  /** An answer; `body` is the parsed JSON, or `undefined` when it was none or was too long. */
  | { readonly kind: 'answer'; readonly status: number; readonly body: unknown; readonly tooLong?: true }
  /** A redirect that is not followed, because it leaves the endpoint. */
  | { readonly kind: 'redirect'; readonly status: number; readonly host: string }
  /** No answer. `sent` is false when the request certainly never left. */
  | {
      readonly kind: 'none'
      readonly sent: boolean
      readonly why: 'timeout' | 'aborted' | 'network'
      readonly code?: string
    }

/** What it means. Everything but `ok` is no proof that nothing happened. */
export type Outcome =
  | { readonly kind: 'ok'; readonly result: unknown }
  | { readonly kind: 'missing'; readonly what: 'session' | 'task' | 'route' | 'other' }
  | { readonly kind: 'exists' }
  /** This session has a failed archive, and this (old) server will never commit it again. */
  | { readonly kind: 'blocked' }
  | Failure

export interface Failure {
  readonly kind: 'failed'
  /** Asking again may help. */
  readonly retryable: boolean
  /** The request is over on the server's side, so that what can be read now is final. */
  readonly over: boolean
  readonly aborted: boolean
  readonly status?: number
  readonly code: string
  /** Which field was refused, or where a redirect led. Never the server's own words: they may quote what was sent. */
  readonly where?: string
}

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** 408, 429 and 5xx pass, and so does a busy lock; other refusals want a human. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504])

/** A gateway that gave up while the server may still be working. */
const GATEWAY = new Set([408, 502, 504])

/** The one table of answers; old servers put errors under HTTP 200, so the envelope counts as much as the status. */
export function judge(reply: Reply): Outcome {
  if (reply.kind === 'none') {
    const code = reply.why === 'network' ? (reply.code ?? 'NETWORK') : reply.why.toUpperCase()
    return { kind: 'failed', retryable: true, over: !reply.sent, aborted: reply.why === 'aborted', code }
  }
  if (reply.kind === 'redirect') {
    return { ...failure('REDIRECT', reply.status, true), where: reply.host }
  }
  const { status, body } = reply
  if (!isRecord(body)) {
    const code = reply.tooLong === true ? 'RESPONSE_TOO_LONG' : 'NOT_JSON'
    return { ...failure(code, status, status < 400 || PASSING.has(status)), over: !GATEWAY.has(status) }
  }
  if (body['status'] === 'error' || status >= 400) return judgeError(status, body['error'])
  return { kind: 'ok', result: body['result'] }
}

function judgeError(status: number, error: unknown): Outcome {
  const { code, message, details } = isRecord(error) ? error : {}
  const name = typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : `HTTP_${status}`
  const said = typeof message === 'string' ? message : ''
  const more = isRecord(details) ? details : {}
  if (name === 'NOT_FOUND' || status === 404) return { kind: 'missing', what: whatIsMissing(said, more) }
  if (name === 'ALREADY_EXISTS') return { kind: 'exists' }
  if (status === 405) return { kind: 'missing', what: 'route' }
  if (name === 'FAILED_PRECONDITION' && said.includes('failed archive')) return { kind: 'blocked' }
  // v0.2.x says CONFLICT under HTTP 200 while a commit is under way; newer ones mark what may be asked again.
  const busy = name === 'CONFLICT' && (more['retryable'] === true || status === 200)
  return {
    ...failure(name, status, busy || PASSING.has(status)),
    over: code !== undefined || !GATEWAY.has(status),
    ...refusedField(more),
  }
}

/** Four shapes. Any other 404 proves nothing: the server also makes one of an exception it did not foresee. */
function whatIsMissing(said: string, details: Record<string, unknown>): 'session' | 'task' | 'route' | 'other' {
  if (details['type'] === 'session' || /^Session \S+ not found$|^Session not found: /.test(said)) return 'session'
  if (details['type'] === 'task' || said.startsWith('Task not found')) return 'task'
  return said === 'Not Found' && Object.keys(details).length === 0 ? 'route' : 'other'
}

function refusedField(details: Record<string, unknown>): { where?: string } {
  const errors: unknown = details['validation_errors']
  const first: unknown = Array.isArray(errors) ? errors[0] : undefined
  const loc = isRecord(first) ? first['loc'] : undefined
  return typeof loc === 'string' && /^[\w.-]{1,100}$/.test(loc) ? { where: loc } : {}
}

const failure = (code: string, status: number, retryable: boolean): Failure => ({
  kind: 'failed',
  retryable,
  over: true,
  aborted: false,
  status,
  code,
})
