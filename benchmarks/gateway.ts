import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Seen, User } from './gateway/user.js'
import { median } from './measure.js'
import type { BenchRow } from './row.js'

/** Shorter or smaller for a quick look: GATEWAY_BENCH_SECONDS, GATEWAY_BENCH_USERS. */
const SECONDS = Number(process.env['GATEWAY_BENCH_SECONDS'] ?? 60)
const USERS = Number(process.env['GATEWAY_BENCH_USERS'] ?? 500)
/** About as fast as somebody reads. */
const WORD_MS = 200
/** They do not all come in the same millisecond. */
const RAMP_MS = 3_000
const START_LIMIT_MS = 30_000

/** Many people at once, each with a stream open nearly all the time, against one real gateway process on loopback. */
export async function benchGateway(): Promise<BenchRow[]> {
  const directory = await mkdtemp(join(tmpdir(), 'tidemark-bench-gateway-'))
  const server = spawn(process.execPath, ['--import', 'tsx', 'benchmarks/gateway/server.ts'], {
    cwd: new URL('..', import.meta.url),
    env: {
      ...process.env,
      TIDEMARK_DIR: directory,
      PORT: '0',
      WORD_MS: String(WORD_MS),
      SHUTDOWN_DEADLINE_MS: '60000',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(server, 'close') as Promise<[number | null]>
  const agent = new Agent({ keepAlive: true, maxSockets: Infinity })
  try {
    const url = await readUrl(server)
    const token = /gateway-token" content="([^"]+)"/.exec(await (await fetch(url)).text())?.[1] ?? ''
    const seen: Seen = { newChatMs: [], firstTokenMs: [], errors: [], turns: new Map() }
    const memory = watchMemory(server.pid ?? 0)
    const end = Date.now() + SECONDS * 1_000
    const users = Array.from({ length: USERS }, async (_, at) => {
      await pause((at * RAMP_MS) / USERS)
      await new User(url, token, agent, seen).chatUntil(end, { name: `Town${at}`, words: 15 + (at % 11) })
    })
    await Promise.all(users)
    const samples = memory.stop()
    const cpuMs = await readCpu(server.pid ?? 0)
    const lost = await countLost(url, seen)
    server.kill('SIGTERM')
    const [code] = await exit
    return rowsOf(seen, { samples, cpuMs, lost, code })
  } finally {
    agent.destroy()
    server.kill('SIGKILL')
    await rm(directory, { recursive: true, force: true })
  }
}

interface Measured {
  readonly samples: readonly number[]
  readonly cpuMs: number | undefined
  readonly lost: number
  readonly code: number | null
}

function rowsOf(seen: Seen, { samples, cpuMs, lost, code }: Measured): BenchRow[] {
  const turns = [...seen.turns.values()].reduce((sum, count) => sum + count, 0)
  const name = `${USERS} streams, ${SECONDS} s`
  const quarter = Math.floor(samples.length / 4)
  const early = median(samples.slice(quarter, 2 * quarter))
  const late = median(samples.slice(-quarter))
  if (seen.errors.length > 0) console.log([...new Set(seen.errors)].slice(0, 5).join('\n'))
  return [
    { name: `${name}: turns`, value: turns / SECONDS, unit: 'turns/s' },
    ...(cpuMs === undefined ? [] : [{ name: `${name}: processor time`, value: cpuMs / turns, unit: 'ms/turn' }]),
    { name: `${name}: errors`, value: seen.errors.length, unit: '', bar: '0', ok: seen.errors.length === 0 },
    { name: `${name}: lost turns`, value: lost, unit: '', bar: '0', ok: lost === 0 },
    { name: `${name}: exit code after SIGTERM`, value: code ?? -1, unit: '', bar: '0', ok: code === 0 },
    { name: `${name}: first token, p50`, value: percentile(seen.firstTokenMs, 0.5), unit: 'ms' },
    { name: `${name}: first token, p99`, value: percentile(seen.firstTokenMs, 0.99), unit: 'ms' },
    { name: `${name}: new chat, p50`, value: percentile(seen.newChatMs, 0.5), unit: 'ms' },
    { name: `${name}: new chat, p99`, value: percentile(seen.newChatMs, 0.99), unit: 'ms' },
    ...(samples.length < 80
      ? []
      : [
          {
            name: `${name}: memory, last quarter by second quarter`,
            value: late / early,
            unit: 'times',
            limit: `${Math.round(late / 2 ** 20)} MiB`,
            bar: 'at most 1.3',
            ok: late / early <= 1.3,
          },
        ]),
  ]
}

/** A turn whose end was seen is in the transcript, and memory knows of it. */
async function countLost(url: string, { turns }: Seen): Promise<number> {
  let lost = 0
  for (const [id, finished] of turns) {
    const chat = (await (await fetch(`${url}/api/sessions/${id}`)).json()) as {
      messages: { role: string }[]
      memory: { generation: number }
    }
    const asked = chat.messages.filter(({ role }) => role === 'user').length
    lost += Math.max(0, finished - Math.min(asked, chat.memory.generation))
  }
  return lost
}

/** The resident memory of a process, twice a second; nothing where there is no /proc. */
function watchMemory(pid: number): { stop(): number[] } {
  const samples: number[] = []
  const timer = setInterval(() => {
    readFile(`/proc/${pid}/status`, 'utf8').then(
      (status) => void samples.push(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1024),
      () => clearInterval(timer),
    )
  }, 500)
  return {
    stop() {
      clearInterval(timer)
      return samples
    },
  }
}

/** Processor time of a process so far, whatever else the machine does; nothing where there is no /proc. */
async function readCpu(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  // Behind the name in brackets: the 12th and 13th field are user and system time, in hundredths of a second.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) * 10
}

function readUrl(server: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('the gateway took too long to start')), START_LIMIT_MS).unref()
    server.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const url = /http:\S+/.exec(text)?.[0]
      if (url !== undefined) resolve(url)
    })
  })
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}
