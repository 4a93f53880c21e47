import { TidemarkError, type TidemarkErrorCode } from '../../base/errors.js'
import type { ConnectionOptions } from './connection.js'
import type { StoreCalls } from './host.js'

/** What a worker is started with. `requests` counts what was sent to it: it sleeps on that number. */
export interface WorkerStart {
  readonly options: ConnectionOptions
  readonly requests: Int32Array
}

export type WorkerRequest =
  | { readonly id: number; readonly kind: 'call'; readonly name: keyof StoreCalls; readonly args: unknown[] }
  | { readonly id: number; readonly kind: 'close' }

export type WorkerReply =
  { readonly id: number; readonly result: unknown } | { readonly id: number; readonly error: SentError }

/** An error as it crosses from one thread to another: classes and codes do not survive the way by themselves. */
export interface SentError {
  readonly message: string
  readonly code: TidemarkErrorCode | undefined
  readonly details: Readonly<Record<string, unknown>>
  readonly errcode: number | undefined
  readonly errstr: string | undefined
}

export function sendError(error: unknown): SentError {
  const { errcode, errstr } = error as { errcode?: number; errstr?: string }
  const isOurs = error instanceof TidemarkError
  return {
    message: error instanceof Error ? error.message : String(error),
    code: isOurs ? error.code : undefined,
    details: isOurs ? error.details : {},
    errcode,
    errstr,
  }
}

export function receiveError({ message, code, details, errcode, errstr }: SentError): Error {
  if (code !== undefined) return new TidemarkError(code, message, { details })
  return Object.assign(new Error(message), { errcode, errstr })
}
