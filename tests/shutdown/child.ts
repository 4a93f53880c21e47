import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { FixtureConfig } from './fixture.js'

export interface Ending {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export interface Child {
  readonly lines: Record<string, unknown>[]
  /** All it wrote, errors included. */
  text(): string
  /** Resolves when it has said this event. */
  said(event: string): Promise<void>
  send(signal: NodeJS.Signals): void
  readonly ended: Promise<Ending>
  /** What the shutdown logged at its end. */
  report(): Record<string, unknown> | undefined
}

const LONGEST_WAIT_MS = 60_000
const FIXTURE = fileURLToPath(new URL('fixture.ts', import.meta.url))

/** Starts a real process that pools agents and shuts down gracefully. */
export function startChild(config: FixtureConfig): Child {
  const child = spawn(process.execPath, ['--import', 'tsx', FIXTURE, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: Record<string, unknown>[] = []
  const listeners = new Set<() => void>()
  let text = ''
  child.stderr.on('data', (data: Buffer) => (text += data.toString()))
  createInterface({ input: child.stdout }).on('line', (line) => {
    text += `${line}\n`
    lines.push(JSON.parse(line) as Record<string, unknown>)
    for (const listener of listeners) listener()
  })
  const ended = bounded(
    'the process to end',
    new Promise<Ending>((resolve) => child.once('close', (code, signal) => resolve({ code, signal }))),
  )
  ended.catch(() => child.kill('SIGKILL'))
  const said = (event: string): Promise<void> =>
    bounded(
      `the process to say '${event}'`,
      new Promise<void>((resolve, reject) => {
        const look = (): void => {
          if (!lines.some((line) => line['event'] === event)) return
          listeners.delete(look)
          resolve()
        }
        listeners.add(look)
        look()
        void ended.then(() => reject(new Error(`The process ended without saying '${event}':\n${text}`)))
      }),
    )
  return {
    lines,
    text: () => text,
    said,
    send: (signal) => {
      child.kill(signal)
    },
    ended,
    report: () => lines.find((line) => String(line['log']).startsWith('shut down')),
  }
}

async function bounded<T>(what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const expired = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`Waited ${LONGEST_WAIT_MS} ms in vain for ${what}.`)), LONGEST_WAIT_MS)
  })
  try {
    return await Promise.race([promise, expired])
  } finally {
    clearTimeout(timer)
  }
}
