export interface SessionParams {
  readonly id: string
}

export interface RunParams extends SessionParams {
  readonly runId: string
}

/** What a session store accepts; checked here, so that a strange id is a bad request and never becomes a path. */
const ID = { type: 'string', pattern: '^(?!\\.{1,2}$)[A-Za-z0-9_.:@-]{1,128}$' }

export const SESSION = object({ id: ID }, ['id'])
export const RUN = object({ id: ID, runId: ID }, ['id', 'runId'])
export const NEW_SESSION = object({ previousId: ID }, [])
export const TEXT = object({ text: { type: 'string', maxLength: 16_000, pattern: '\\S' } }, ['text'])
export const FACT = object({ id: { type: 'string', pattern: '^[1-9]\\d{0,14}$' } }, ['id'])
export const CURSOR = object({ after: { type: 'string', pattern: '^\\d{1,15}$' } }, [])

function object(properties: object, required: readonly string[]): object {
  return { type: 'object', properties, required, additionalProperties: false }
}
