import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

export interface Child {
  readonly pid: number
  /** Everything it printed so far. */
  readonly lines: readonly string[]
  /** Waits for a line; fails with what it printed to stderr when the child ends before. */
  line(matches: (line: string) => boolean, what: string): Promise<string>
  kill(signal?: NodeJS.Signals): void
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>
}

/** Starts a TypeScript file as a process of its own; it is killed after the test at the latest. */
export function startChild(script: URL, args: readonly string[]): Child {
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', script.pathname, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid, stdout, stderr } = child
  if (pid === undefined || stdout === null || stderr === null) throw new Error(`${script.pathname} did not start`)
  const lines: string[] = []
  const waiting = new Set<() => void>()
  const wake = () => {
    for (const check of waiting) check()
  }
  let errors = ''
  let isGone = false
  stderr.on('data', (data: Buffer) => (errors += data.toString()))
  createInterface({ input: stdout }).on('line', (line) => {
    lines.push(line)
    wake()
  })
  const ended = once(child, 'close').then(() => {
    isGone = true
    wake()
  })
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return {
    pid,
    lines,
    ended,
    kill: (signal = 'SIGKILL') => void child.kill(signal),
    line: (matches, what) =>
      new Promise((resolve, reject) => {
        const check = () => {
          const found = lines.find(matches)
          if (found === undefined && !isGone) return
          waiting.delete(check)
          if (found === undefined) reject(new Error(`the child ended before: ${what}\n${errors}`))
          else resolve(found)
        }
        waiting.add(check)
        check()
      }),
  }
}
