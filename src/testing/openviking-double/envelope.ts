/** What goes back over the wire, before it is bytes. */
export interface Answer {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Success: null keys stay, except on commit, search and config (`server/models.py:10-25`, `sessions.py:695-699`). */
export const ok = (result: unknown): Answer => ({
  status: 200,
  body: { status: 'ok', result, error: null, telemetry: null, profile: null },
})

export const okBare = (result: unknown): Answer => ({ status: 200, body: { status: 'ok', result } })

/** Raised inside a handler, written out as the error envelope (`app.py:488-502`). */
export class WireError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly details?: Readonly<Record<string, unknown>>,
  ) {
    super(message)
  }

  toAnswer(): Answer {
    const error = { code: this.code, message: this.message, ...(this.details && { details: this.details }) }
    return { status: this.status, body: { status: 'error', error } }
  }
}

/** Validation is 400, not 422 (`app.py:153-180,504-525`). */
export function invalid(loc: string, message: string, type = 'value_error'): WireError {
  return new WireError(400, 'INVALID_ARGUMENT', `Invalid request parameters: ${loc}: ${message}`, {
    validation_errors: [{ loc, message, type }],
  })
}

/** The shape that handlers raise; `GET /sessions/{id}` has one of its own, without details. */
export const sessionMissing = (id: string): WireError =>
  new WireError(404, 'NOT_FOUND', `Session not found: ${id}`, { type: 'session', resource: id })

/** Unknown route: no details (`app.py:182-204,527-549`). An old server answers so to routes it does not have yet. */
export const routeMissing = (): WireError => new WireError(404, 'NOT_FOUND', 'Not Found')

export const internalError = (): WireError => new WireError(500, 'INTERNAL', 'Internal server error')

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
