import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { LocalHost } from './host.js'
import { sendError, type WorkerReply, type WorkerRequest, type WorkerStart } from './worker-messages.js'

/**
 * The thread that waits for the disk. Once the file is open it has nothing to do but requests, one after the other: it
 * sleeps on a shared number instead of an event loop, which makes a round trip three times as fast.
 */
async function serve(port: MessagePort, { options, requests }: WorkerStart): Promise<void> {
  const host = new LocalHost(options)
  const reply = (message: WorkerReply): void => port.postMessage(message)
  const answer = (id: number, work: () => unknown): void => {
    let message: WorkerReply
    try {
      message = { id, result: work() }
    } catch (error) {
      message = { id, error: sendError(error) }
    }
    reply(message)
  }

  try {
    await host.open()
  } catch (error) {
    reply({ id: 0, error: sendError(error) })
    return
  }
  reply({ id: 0, result: undefined })

  for (;;) {
    // Read before the requests: one that comes in between changes the number, and the sleep below ends at once.
    const seen = Atomics.load(requests, 0)
    for (let next = receive(port); next !== undefined; next = receive(port)) {
      const request = next
      if (request.kind === 'call') {
        answer(request.id, () => host.call(request.name, ...(request.args as never)))
      } else {
        await host.close()
        reply({ id: request.id, result: undefined })
        return
      }
    }
    Atomics.wait(requests, 0, seen)
  }
}

function receive(port: MessagePort): WorkerRequest | undefined {
  return (receiveMessageOnPort(port) as { message: WorkerRequest } | undefined)?.message
}

if (parentPort !== null) void serve(parentPort, workerData as WorkerStart)
