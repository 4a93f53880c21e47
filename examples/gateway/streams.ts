import { finished, Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { EventName, MemoryLifecycle } from 'tidemark'
import { notFound } from './errors.js'
import type { Gateway } from './gateway.js'
import { Inbox } from './inbox.js'
import { CURSOR, RUN, type RunParams } from './schemas.js'

/** What moves the memory panel of the page: ids and numbers, never what was said. */
const MEMORY_EVENTS: readonly EventName[] = [
  ...(['turn:recorded', 'commit:started', 'commit:succeeded', 'commit:accepted', 'commit:failed'] as const),
  ...(['receipt:settled', 'segment:parked'] as const),
]
const RECONNECT = 'retry: 500\n\n'

/** Server-sent events. A browser reconnects by itself and says with `Last-Event-ID` what it saw last. */
export function addStreams(app: FastifyInstance, { journal, turns, lifecycle }: Gateway): void {
  const open = new Set<AbortController>()
  // Nothing else ends a stream that waits, so a server that closes would wait with it.
  app.addHook('preClose', async () => {
    for (const controller of open) controller.abort()
  })

  const send = (reply: FastifyReply, events: (signal: AbortSignal) => AsyncGenerator<string>): FastifyReply => {
    const controller = new AbortController()
    open.add(controller)
    // Also for somebody who hung up before we came here.
    finished(reply.raw, () => {
      open.delete(controller)
      controller.abort()
    })
    // A connection that was a stream is not used again, so that nothing waits for it at shutdown.
    return reply
      .type('text/event-stream')
      .header('connection', 'close')
      .send(Readable.from(events(controller.signal)))
  }

  app.get<{ Params: RunParams; Querystring: { after?: string } }>(
    '/api/sessions/:id/runs/:runId/events',
    { schema: { params: RUN, querystring: CURSOR } },
    async ({ params: { id, runId }, query, headers }, reply) => {
      // Whoever is told that this answer is over finds the chat in order.
      if ((await turns.read(id)) === undefined) throw notFound('chat')
      const isKnown = turns.isRunning(id, runId) || (await journal.summary(id, runId)).state !== 'unknown'
      if (!isKnown) throw notFound('answer')
      const after = readCursor(headers['last-event-id']) ?? readCursor(query.after) ?? 0
      return send(reply, async function* (signal) {
        yield RECONNECT
        for await (const { seq, event, payload } of turns.follow(id, runId, after, signal)) {
          yield `id: ${seq}\n${message(event, payload)}`
        }
        // Tells the page to close its end; without it a browser would connect again for ever.
        if (!signal.aborted) yield message('end', {})
      })
    },
  )

  app.get('/api/events', (_request, reply) => send(reply, (signal) => memoryEvents(lifecycle, signal)))
}

async function* memoryEvents(lifecycle: MemoryLifecycle, signal: AbortSignal): AsyncGenerator<string> {
  const inbox = new Inbox<object>({ limit: 1_000, signal })
  const stops = MEMORY_EVENTS.map((name) => lifecycle.on(name, (event) => inbox.put({ name, ...event })))
  try {
    yield RECONNECT
    for (let arrived = await inbox.take(); arrived !== undefined; arrived = await inbox.take()) {
      const events = arrived === 'behind' ? [{ name: 'missed' }] : arrived
      for (const event of events) yield message('memory', event)
    }
  } finally {
    for (const stop of stops) stop()
  }
}

function message(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`
}

function readCursor(value: string | string[] | undefined): number | undefined {
  return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : undefined
}
