import { onTestFinished } from 'vitest'
import { startOpenVikingDouble } from '../support/openviking-double.js'
import { until } from './until.js'

export { until }

type DoubleOptions = Parameters<typeof startOpenVikingDouble>[0]
export type Double = Awaited<ReturnType<typeof startOpenVikingDouble>>

/** Tests that run side by side bring their own `onTestFinished`. */
export type AtEnd = (end: () => Promise<void>) => void

/** A double that ends with its test. */
export async function startDouble(options?: DoubleOptions, atEnd: AtEnd = onTestFinished): Promise<Double> {
  const double = await startOpenVikingDouble(options)
  atEnd(() => double.close())
  return double
}

export interface WireAnswer {
  readonly status: number
  readonly headers: Headers
  readonly json: {
    readonly status?: string
    readonly result?: Readonly<Record<string, unknown>> | null
    readonly error?: { code: string; message: string; details?: Record<string, unknown> } | null
  } & Record<string, unknown>
}

export async function request(
  double: Double,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<WireAnswer> {
  const response = await fetch(`${double.url}${path}`, {
    method,
    headers: { connection: 'close', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, json: (await response.json()) as WireAnswer['json'] }
}

export const post = (double: Double, path: string, body?: unknown, headers?: Record<string, string>) =>
  request(double, 'POST', `/api/v1${path}`, body, headers)

export const read = (double: Double, path: string, headers?: Record<string, string>) =>
  request(double, 'GET', `/api/v1${path}`, undefined, headers)

export const taskEnds = (double: Double, taskId: string, status: string): Promise<void> =>
  until(`task ${taskId} is ${status}`, async () =>
    double.controls.tasks().some((t) => t.id === taskId && t.status === status),
  )
