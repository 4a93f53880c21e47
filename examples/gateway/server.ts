import { randomBytes } from 'node:crypto'
import fastify, { type FastifyError, type FastifyInstance, type FastifyReply } from 'fastify'
import { TidemarkError } from 'tidemark'
import { notFound, RequestError } from './errors.js'
import { servePage } from './page.js'
import { addRoutes } from './routes.js'
import { guardRequests } from './safety.js'
import type { Gateway } from './gateway.js'
import { addStreams } from './streams.js'

/** A long question, in bytes; everything else that is sent here is far smaller. */
const LARGEST_BODY = 64 * 1024

const STATUS: Readonly<Record<string, number>> = { NOT_FOUND: 404, RUN_ALIVE: 409, CLOSED: 503 }
/** Whose messages name files: people are told what it means for them. */
const DISK_FAILED = ['WRITE_FAILED', 'LEDGER_FAILED']
const NOT_SAVED = 'This could not be saved. Is the disk full? Make room and try again.'

export async function createServer(gateway: Gateway): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: LARGEST_BODY,
    exposeHeadRoutes: false,
    // Connections that only wait are closed at shutdown; the event streams end by themselves.
    forceCloseConnections: 'idle',
    // Long enough for every id; what is longer is refused by its schema.
    routerOptions: { maxParamLength: 1_000 },
    // A number is not quietly made a text, and a field that nobody knows is an error.
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    frameworkErrors: (error, _request, reply) => void sendError(reply, error, gateway),
  })
  app.removeContentTypeParser('text/plain')
  // One token a start. It is in the page, and a foreign page cannot read ours.
  const token = randomBytes(24).toString('base64url')
  app.setErrorHandler((error, _request, reply) => sendError(reply, error, gateway))
  app.setNotFoundHandler(() => {
    throw notFound('address')
  })
  guardRequests(app, token)
  await servePage(app, token)
  addRoutes(app, gateway)
  addStreams(app, gateway)
  return app
}

/** What the caller did wrong is said; what went wrong here is logged and not shown. */
function sendError(reply: FastifyReply, error: unknown, { logger }: Gateway): FastifyReply {
  const { statusCode = 500, code = 'INTERNAL', message } = describe(error)
  if (statusCode >= 500) logger.error({ err: error }, 'a request failed')
  return reply
    .code(statusCode)
    .send({ error: { code, message: statusCode === 500 ? 'Something went wrong.' : message } })
}

function describe(error: unknown): { statusCode?: number; code?: string; message: string } {
  if (error instanceof RequestError) return { statusCode: error.status, code: error.code, message: error.message }
  if (error instanceof TidemarkError) {
    if (DISK_FAILED.includes(error.code)) return { statusCode: 507, code: error.code, message: NOT_SAVED }
    const statusCode = STATUS[error.code]
    return { ...(statusCode === undefined ? {} : { statusCode }), code: error.code, message: error.message }
  }
  const { statusCode, code, message, validation } = error as Partial<FastifyError>
  if (validation !== undefined) return { statusCode: 400, code: 'BAD_REQUEST', message: message ?? '' }
  return {
    ...(statusCode === undefined ? {} : { statusCode }),
    ...(code === undefined ? {} : { code: code.replace(/^FST_(?:ERR_)?(?:CTP_)?/, '') }),
    message: message ?? '',
  }
}
