import type { AddressInfo } from 'node:net'
import { TidemarkError } from 'tidemark'
import { gracefulShutdown, type ShutdownReport } from 'tidemark/shutdown'
import { closeGateway, type Gateway, type GatewayOptions, openGateway } from './gateway.js'
import { createServer } from './server.js'

export interface StartOptions extends GatewayOptions {
  readonly port: number
  readonly deadlineMs: number
}

/** Why it does not start, in words for whoever typed the command. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** Opens what is kept, listens on loopback, and closes everything in order when a signal comes. */
export async function start(options: StartOptions): Promise<{ url: string; gateway: Gateway }> {
  const { directory, port, deadlineMs, logger } = options
  const gateway = await openGateway(options).catch((error: unknown) => {
    throw explain(error, directory) ?? error
  })
  const { lifecycle, sessions, journal, pool, memory, turns } = gateway
  const server = await createServer(gateway)
  try {
    await server.listen({ host: '127.0.0.1', port })
  } catch (error) {
    await closeGateway(gateway)
    throw isCode(error, 'EADDRINUSE', 'EACCES') ? portRefused(port, error) : error
  }
  const { signal } = gracefulShutdown({
    ...{ lifecycle, sessions, journal, pool, deadlineMs, logger },
    servers: [
      {
        close: () => server.close(),
        closeIdleConnections: () => server.server.closeIdleConnections(),
        closeAllConnections: () => server.server.closeAllConnections(),
      },
    ],
    waitForTurns: () => turns.idle(),
    interruptTurns: () => turns.interrupt(),
    onReport: async (report) => {
      await memory.close()
      process.stdout.write(`${summaryOf(report)}\n`)
    },
  })
  turns.recover(signal).catch((error: unknown) => {
    if (!signal.aborted) logger.error({ err: error }, 'what an earlier process left could not be looked through')
  })
  const { port: chosen } = server.server.address() as AddressInfo
  return { url: `http://127.0.0.1:${chosen}`, gateway }
}

function summaryOf({ drain, durationMs, exitCode }: ShutdownReport): string {
  const { committed = 0, accepted = 0, remaining = [] } = drain ?? {}
  const left = remaining.length === 0 ? 'nothing is left' : `${remaining.length} are left for the next start`
  const count = committed + accepted
  const learned = `${count} ${count === 1 ? 'stretch' : 'stretches'} of conversation handed to memory, ${left}`
  return `Stopped after ${durationMs} ms: ${learned}${exitCode === 0 ? '.' : ' (exit code 1).'}`
}

function portRefused(port: number, error: unknown): StartError {
  return isCode(error, 'EACCES')
    ? new StartError(`Port ${port} is reserved for the administrator. Choose one above 1023: PORT=4747 npm start`)
    : new StartError(`Port ${port} is taken. Stop what uses it, or choose another one: PORT=${port + 1} npm start`)
}

function explain(error: unknown, directory: string): StartError | undefined {
  if (error instanceof TidemarkError && error.code === 'LOCKED') {
    return new StartError(`Another gateway works in ${directory}. ${error.message}`)
  }
  if (isCode(error, 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST', 'ENOENT', 'ENOSPC')) {
    const { code } = error as NodeJS.ErrnoException
    return new StartError(
      `${directory} cannot be written to (${code ?? ''}). Make it writable, or choose another: TIDEMARK_DIR=<path> npm start`,
    )
  }
  if (error instanceof TidemarkError) return new StartError(error.message)
  return undefined
}

function isCode(error: unknown, ...codes: string[]): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && codes.includes(code)
}
