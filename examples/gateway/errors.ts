/** A request that is answered with a status and a JSON error. The message is shown to whoever asked. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function notFound(what: string): RequestError {
  return new RequestError(404, 'NOT_FOUND', `There is no such ${what}.`)
}
