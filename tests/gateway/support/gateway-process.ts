import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { onTestFinished } from 'vitest'

export const ROOT = new URL('../../../', import.meta.url)
const MAIN = 'examples/gateway/main.ts'
const READY = /(http:\/\/127\.0\.0\.1:\d+)/
const START_LIMIT_MS = 30_000

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly output: string
}

export interface GatewayProcess {
  readonly url: string
  readonly pid: number
  readonly output: () => string
  kill(signal: NodeJS.Signals): Promise<Exit>
}

export interface SpawnOptions {
  readonly directory: string
  readonly port?: number
  /** Instead of the gateway's own main. */
  readonly script?: string
  readonly env?: Readonly<Record<string, string>>
  /** Runs it as another user. */
  readonly uid?: number
}

/** Starts a real gateway and waits until it says where it listens. It is killed with the test, if it still lives. */
export async function startGateway(options: SpawnOptions): Promise<GatewayProcess> {
  const child = launch(options)
  const exit = exitOf(child)
  const url = await Promise.race([readUrl(child), failOnExit(exit), failLate()])
  return {
    url,
    pid: child.process.pid ?? 0,
    output: child.output,
    async kill(signal) {
      child.process.kill(signal)
      return exit
    },
  }
}

/** Starts one that is expected to give up, and waits for its end. */
export function runGateway(options: SpawnOptions): Promise<Exit> {
  return Promise.race([exitOf(launch(options)), failLate()])
}

interface Launched {
  readonly process: ChildProcess
  readonly output: () => string
}

function launch({ directory, port = 0, script = MAIN, env = {}, uid }: SpawnOptions): Launched {
  const child = spawn(process.execPath, ['--import', 'tsx', script], {
    cwd: ROOT,
    env: { ...cleanEnvironment(), TIDEMARK_DIR: directory, PORT: String(port), ...env },
    ...(uid === undefined ? {} : { uid, gid: uid }),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
  })
  return { process: child, output: () => output }
}

async function exitOf({ process: child, output }: Launched): Promise<Exit> {
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null]
  return { code, signal, output: output() }
}

function readUrl({ process: child, output }: Launched): Promise<string> {
  return new Promise((resolve) => {
    child.stdout?.on('data', () => {
      const url = READY.exec(output())?.[1]
      if (url !== undefined) resolve(url)
    })
  })
}

async function failOnExit(exit: Promise<Exit>): Promise<never> {
  const { code, signal, output } = await exit
  throw new Error(`the gateway ended (${String(code ?? signal)}) before it listened:\n${output}`)
}

function failLate(): Promise<never> {
  return new Promise((_, reject) => {
    const timer = setTimeout(() => reject(new Error('the gateway took too long')), START_LIMIT_MS)
    timer.unref()
  })
}

/** What the machine has set must not choose another model or memory. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const { OPENAI_BASE_URL: _a, OPENVIKING_URL: _b, LOG_LEVEL: _c, ...rest } = process.env
  return rest
}
