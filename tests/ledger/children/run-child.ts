import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface ChildResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export function childPath(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url))
}

/** Runs a script of this folder to its end. */
export function runChild(
  name: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<ChildResult> {
  const child = spawn(process.execPath, ['--import', 'tsx', childPath(name), ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
}
