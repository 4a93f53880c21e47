import { Worker } from 'node:worker_threads'
import type { ConnectionOptions } from './connection.js'
import type { StoreCalls, StoreHost } from './host.js'
import { receiveError, type WorkerReply, type WorkerRequest, type WorkerStart } from './worker-messages.js'

interface Waiter {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never

/** The file on a thread of its own: the event loop never waits for a sync. A file that failed ends with its thread. */
export class WorkerHost implements StoreHost {
  readonly #options: ConnectionOptions
  readonly #waiters = new Map<number, Waiter>()
  readonly #requests = new Int32Array(new SharedArrayBuffer(4))
  #worker: Worker | undefined
  #newest = 0

  constructor(options: ConnectionOptions) {
    this.#options = options
  }

  async open(): Promise<void> {
    const worker = startWorker({ options: this.#options, requests: this.#requests })
    this.#worker = worker
    worker.on('message', (reply: WorkerReply) => this.#settle(reply))
    worker.on('error', (error) => this.#failAll(error))
    worker.on('exit', () => this.#failAll(ended()))
    try {
      await this.#answerTo(0)
    } catch (error) {
      await this.abandon()
      throw error
    }
  }

  async call<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): Promise<ReturnType<StoreCalls[Name]>> {
    return (await this.#ask({ kind: 'call', name, args })) as ReturnType<StoreCalls[Name]>
  }

  async abandon(): Promise<void> {
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  async close(): Promise<void> {
    if (this.#worker === undefined) return
    try {
      await this.#ask({ kind: 'close' })
    } finally {
      await this.abandon()
    }
  }

  #ask(request: WithoutId<WorkerRequest>): Promise<unknown> {
    const worker = this.#worker
    if (worker === undefined) return Promise.reject(ended())
    const id = ++this.#newest
    const answer = this.#answerTo(id)
    worker.postMessage({ id, ...request })
    Atomics.add(this.#requests, 0, 1)
    Atomics.notify(this.#requests, 0)
    return answer
  }

  /** The thread keeps the process alive only while somebody waits for it. */
  #answerTo(id: number): Promise<unknown> {
    if (this.#waiters.size === 0) this.#worker?.ref()
    return new Promise((resolve, reject) => this.#waiters.set(id, { resolve, reject }))
  }

  #settle(reply: WorkerReply): void {
    const waiter = this.#waiters.get(reply.id)
    this.#waiters.delete(reply.id)
    if (this.#waiters.size === 0) this.#worker?.unref()
    if ('error' in reply) waiter?.reject(receiveError(reply.error))
    else waiter?.resolve(reply.result)
  }

  #failAll(error: Error): void {
    this.#worker = undefined
    for (const waiter of this.#waiters.values()) waiter.reject(error)
    this.#waiters.clear()
  }
}

function ended(): Error {
  return new Error('the thread of the ledger has ended')
}

/** From the published package: a file beside this one. From the sources, as our own tests run it: through tsx. */
function startWorker(workerData: WorkerStart): Worker {
  const isSource = import.meta.url.endsWith('.ts')
  if (!isSource) return new Worker(new URL('./sqlite-worker.js', import.meta.url), { workerData })
  const source = JSON.stringify(new URL('./worker.ts', import.meta.url).href)
  const start = `import('tsx/esm/api').then(({ tsImport }) => tsImport(${source}, ${source}))`
  return new Worker(start, { workerData, eval: true })
}
