import type { FastifyInstance } from 'fastify'
import { notFound } from './errors.js'
import type { Gateway } from './gateway.js'
import { FACT, NEW_SESSION, RUN, type RunParams, SESSION, type SessionParams, TEXT } from './schemas.js'

export function addRoutes(app: FastifyInstance, gateway: Gateway): void {
  const { sessions, turns, lifecycle, memory, model } = gateway

  app.get('/api/health', async () => ({ model: model.name, memory: memory.name, ...(await lifecycle.health()) }))

  app.get('/api/sessions', () => sessions.list())

  /** A new chat is a boundary for the one before: its memory is committed, and nobody waits for that. */
  app.post<{ Body: { previousId?: string } }>(
    '/api/sessions',
    { schema: { body: NEW_SESSION } },
    async (request, reply) => {
      const { previousId } = request.body
      if (previousId !== undefined && (await sessions.get(previousId)) === undefined) throw notFound('chat')
      const session = await sessions.create()
      await sessions.save(session)
      if (previousId !== undefined) turns.leave(previousId, session.id)
      return reply.code(201).send({ id: session.id })
    },
  )

  app.get<{ Params: SessionParams }>('/api/sessions/:id', { schema: { params: SESSION } }, async ({ params }) => {
    const session = await turns.read(params.id)
    if (session === undefined) throw notFound('chat')
    const { id, title, messages, toolCalls, activeRunId, pendingUserMessage, pendingStartedAt } = session
    const { generation = 0, watermark = 0, segments = [] } = (await lifecycle.inspect(id)) ?? {}
    const turnsIn = (state: string): number =>
      segments.reduce((sum, each) => sum + (each.state === state ? each.to - each.from + 1 : 0), 0)
    return {
      ...{ id, title, messages, toolCalls, activeRunId, pendingUserMessage, pendingStartedAt },
      memory: {
        ...{ generation, watermark, waiting: turnsIn('dirty') + turnsIn('claimed') },
        ...{ accepted: turnsIn('accepted'), parked: turnsIn('parked') },
      },
    }
  })

  app.post<{ Params: SessionParams; Body: { text: string } }>(
    '/api/sessions/:id/turns',
    { schema: { params: SESSION, body: TEXT } },
    async ({ params, body }, reply) => reply.code(202).send(await turns.start(params.id, body.text)),
  )

  app.post<{ Params: RunParams }>(
    '/api/sessions/:id/runs/:runId/cancel',
    { schema: { params: RUN } },
    async ({ params }, reply) => {
      await turns.cancel(params.id, params.runId)
      return reply.code(204).send()
    },
  )

  app.post<{ Params: SessionParams }>('/api/sessions/:id/undo', { schema: { params: SESSION } }, ({ params }) =>
    turns.undo(params.id),
  )

  app.post<{ Params: SessionParams }>(
    '/api/sessions/:id/retry',
    { schema: { params: SESSION } },
    async ({ params }, reply) => reply.code(202).send(await turns.retry(params.id)),
  )

  app.get('/api/memory/facts', async () => ({ facts: (await memory.facts?.list()) ?? null }))

  app.delete<{ Params: { id: string } }>(
    '/api/memory/facts/:id',
    { schema: { params: FACT } },
    async ({ params }, reply) => {
      if ((await memory.facts?.forget(Number(params.id))) !== true) throw notFound('fact')
      return reply.code(204).send()
    },
  )
}
