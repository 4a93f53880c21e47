import { parentPort } from 'node:worker_threads'
import { LocalHost } from './host.js'
import { sendError, type WorkerReply, type WorkerRequest } from './worker-messages.js'

/** The thread that waits for the disk. Requests are worked off strictly one after the other. */
function serve(port: NonNullable<typeof parentPort>): void {
  let host: LocalHost | undefined
  let last: Promise<void> = Promise.resolve()

  const work = async (request: WorkerRequest): Promise<unknown> => {
    switch (request.kind) {
      case 'open':
        host = new LocalHost(request.options)
        return host.open()
      case 'call':
        if (host === undefined) throw new Error('the ledger file is not open')
        return host.call(request.name, ...(request.args as never))
      case 'close':
        return host?.close()
      default:
        return request satisfies never
    }
  }
  const reply = (message: WorkerReply): void => port.postMessage(message)

  port.on('message', (request: WorkerRequest) => {
    last = last.then(async () => {
      try {
        reply({ id: request.id, result: await work(request) })
      } catch (error) {
        reply({ id: request.id, error: sendError(error) })
      }
    })
  })
}

if (parentPort !== null) serve(parentPort)
