import { join } from 'node:path'
import { recordingLogger, type RecordingLogger } from 'tidemark/testing'
import { onTestFinished } from 'vitest'
import { closeGateway, type Gateway, openGateway } from '../../../examples/gateway/gateway.js'
import { openHolographicMemory } from '../../../examples/gateway/memory/holographic.js'
import type { Memory } from '../../../examples/gateway/memory/memory.js'
import type { Model, ModelEvent, ModelInput } from '../../../examples/gateway/model/model.js'
import { offlineModel } from '../../../examples/gateway/model/offline.js'
import { createServer } from '../../../examples/gateway/server.js'
import { temporaryDirectory } from '../../support/temporary.js'
import { Client } from './client.js'

export interface InProcess {
  readonly client: Client
  readonly gateway: Gateway
  readonly directory: string
  readonly logger: RecordingLogger
  close(): Promise<void>
}

export interface InProcessOptions {
  readonly directory?: string
  readonly model?: Model
  /** Instead of the built-in one. */
  readonly openMemory?: () => Memory
  /** Changes the memory, to make it slow or broken. */
  readonly wrapMemory?: (memory: Memory) => Memory
}

/** The gateway of the example on a real socket, in this process, without its signal handlers. */
export async function startInProcess(options: InProcessOptions = {}): Promise<InProcess> {
  const { model = offlineModel({ wordMs: 0, slowWordMs: 0 }), wrapMemory = (memory) => memory } = options
  const directory = options.directory ?? join(await temporaryDirectory(), 'state')
  const logger = recordingLogger()
  const openMemory = async (path: string): Promise<Memory> =>
    wrapMemory(options.openMemory?.() ?? (await openHolographicMemory(join(path, 'memory.sqlite'))))
  const gateway = await openGateway({ directory, model, logger, openMemory })
  const server = await createServer(gateway)
  const url = await server.listen({ host: '127.0.0.1', port: 0 })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    closing ??= server.close().then(() => closeGateway(gateway))
    // A client may hold a spare connection on which it never asked anything: to Node that one is not idle.
    server.server.closeAllConnections()
    return closing
  }
  onTestFinished(close)
  return { client: await Client.connect(url), gateway, directory, logger, close }
}

/** A model that says what the test lets it say, when it lets it. */
export function steppedModel(): Model & {
  readonly asked: ModelInput[]
  say(...events: ModelEvent[]): void
  finish(): void
} {
  const asked: ModelInput[] = []
  let waiting: (ModelEvent | 'finish')[] = []
  let wake = (): void => undefined
  return {
    name: 'stepped',
    asked,
    say(...events) {
      waiting.push(...events)
      wake()
    },
    finish() {
      waiting.push('finish')
      wake()
    },
    async *answer(input) {
      asked.push(input)
      input.signal.addEventListener('abort', () => wake())
      for (;;) {
        input.signal.throwIfAborted()
        const events = waiting
        waiting = []
        for (const event of events) {
          if (event === 'finish') return
          yield event
        }
        if (events.length === 0) await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}

/** Asks again until it is so, within a bound that is named. */
export async function until(what: string, isSo: () => Promise<boolean>, limitMs = 15_000): Promise<void> {
  const end = Date.now() + limitMs
  while (!(await isSo())) {
    if (Date.now() > end) throw new Error(`waited ${limitMs} ms in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
