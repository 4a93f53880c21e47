import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { temporaryDirectory } from '../support/temporary.js'
import { ROOT, runGateway, startGateway } from './support/gateway-process.js'
import { until } from './support/in-process.js'

test('npm start prints the address and three things to try, and ends with Ctrl+C', async () => {
  const directory = await temporaryDirectory()
  const child = spawn('npm', ['start'], {
    cwd: ROOT,
    env: { ...process.env, TIDEMARK_DIR: join(directory, 'state'), PORT: '0' },
    // A process group of its own, so that the signal reaches all of it, as Ctrl+C does.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  const exit = once(child, 'close')
  onTestFinished(() => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGKILL')
  })
  await until('it says what to try', async () => /3\. Press Ctrl\+C/.test(output), 30_000)
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
  expect(output).toContain('Three things to try:')
  expect((await fetch(`${url ?? ''}/api/health`)).status).toBe(200)
  process.kill(-(child.pid ?? 0), 'SIGINT')
  await exit
  expect(output).toContain('nothing is left.')
})

test('a port that is taken: says so, names the way out, exits with 1', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const { port } = other.address() as AddressInfo
  const { code, output } = await runGateway({ directory: await temporaryDirectory(), port })
  expect(output).toBe(`Port ${port} is taken. Stop what uses it, or choose another one: PORT=${port + 1} npm start\n`)
  expect(code).toBe(1)
})

test('a port that only the administrator may use: says so, exits with 1', async (context) => {
  const limit = await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0')
  if (Number(limit) <= 80) return context.skip('here everybody may listen on every port')
  const parent = await temporaryDirectory()
  await chmod(parent, 0o777)
  const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  const { code, output } = await runGateway({ directory: join(parent, 'state'), port: 80, ...asNobody })
  expect(output).toBe('Port 80 is reserved for the administrator. Choose one above 1023: PORT=4747 npm start\n')
  expect(code).toBe(1)
})

test('a second copy on the same directory: names the first, exits with 1, and leaves it alone', async () => {
  const directory = await temporaryDirectory()
  const first = await startGateway({ directory })
  const { code, output } = await runGateway({ directory })
  expect(output).toContain(`Another gateway works in ${directory}.`)
  expect(output).toContain(String(first.pid))
  expect(output).not.toMatch(/\n {4}at /)
  expect(code).toBe(1)
  expect((await fetch(`${first.url}/api/health`)).status).toBe(200)
})

test('a directory that cannot be written to: says so, exits with 1', async () => {
  const parent = await temporaryDirectory()
  const directory = join(parent, 'locked', 'state')
  await mkdir(join(parent, 'locked'))
  await chmod(join(parent, 'locked'), 0o555)
  await chmod(parent, 0o755)
  // Root may write everywhere, so it becomes somebody else.
  const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {}
  const { code, output } = await runGateway({ directory, ...asNobody })
  expect(output).toContain(`${directory} cannot be written to (EACCES).`)
  expect(output).toContain('TIDEMARK_DIR=<path>')
  expect(output).not.toMatch(/\n {4}at /)
  expect(code).toBe(1)
})

test('a file where the directory should be: says so, exits with 1', async () => {
  const directory = join(await temporaryDirectory(), 'state')
  await writeFile(directory, '')
  const { code, output } = await runGateway({ directory })
  expect(output).toContain(`${directory} cannot be written to (EEXIST).`)
  expect(code).toBe(1)
})

test('a setting that makes no sense: named, and exits with 1', async () => {
  const { code, output } = await runGateway({ directory: await temporaryDirectory(), env: { PORT: 'eighty' } })
  expect(output).toBe("PORT must be a whole number from 0 to 65535, but is 'eighty'.\n")
  expect(code).toBe(1)
})
