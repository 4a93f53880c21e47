import type { Clock } from '../base/clock.js'

/** A `node:http` server or anything like it; or a function that stops accepting and resolves when all requests ended. */
export type Server =
  | {
      close(callback: (error?: Error) => void): unknown
      closeIdleConnections?(): void
      closeAllConnections?(): void
    }
  | (() => Promise<unknown>)

export interface ClosingServers {
  /** Resolves when every request has ended; rejects if a server failed to close. */
  readonly closed: Promise<void>
  /** Cuts what is still connected. */
  cut(): void
}

/** A connection kept alive turns idle when its last response has ended: how often to look for such. */
const LOOK_EVERY_MS = 100

/** Stops accepting at once, synchronously. */
export function closeServers(servers: readonly Server[], clock: Clock): ClosingServers {
  const closed = Promise.all(servers.map(closeServer)).then(() => undefined)
  const objects = servers.filter((server) => typeof server !== 'function')
  let cancelTimer: () => void = () => undefined
  const look = (): void => {
    for (const server of objects) server.closeIdleConnections?.()
    cancelTimer = clock.setTimer(look, LOOK_EVERY_MS)
  }
  look()
  // The step that waits for it reports a failure; until then it is not an unhandled one.
  closed.catch(() => undefined)
  return {
    closed,
    cut() {
      cancelTimer()
      for (const server of objects) server.closeAllConnections?.()
    },
  }
}

async function closeServer(server: Server): Promise<void> {
  if (typeof server === 'function') {
    await server()
    return
  }
  await new Promise<void>((resolve, reject) => {
    const answer = server.close((error) => {
      // Not listening (any more) is what was wanted.
      if (error === undefined || (error as NodeJS.ErrnoException).code === 'ERR_SERVER_NOT_RUNNING') resolve()
      else reject(error)
    })
    if (answer instanceof Promise) answer.then(() => resolve(), reject)
  })
}
