import { randomBytes } from 'node:crypto'
import {
  bodyOf,
  createSession,
  forbidExtra,
  locked,
  ownSession,
  param,
  requireFeature,
  requireSession,
  type Call,
  type Handler,
} from './call.js'
import { commitPhase1 } from './commit.js'
import { invalid, isRecord, ok, okBare, sessionMissing, WireError } from './envelope.js'
import { estimateTokens, readMessage } from './messages.js'
import { ownerOf, sessionKey, type Session, type StoredMessage, type World } from './model.js'

const uriOf = (session: Session): string =>
  `viking://user/${session.owner.split('/')[1] ?? 'default'}/sessions/${session.id}`

const userOf = (session: Session): object => {
  const [account_id, user_id] = session.owner.split('/')
  return { account_id, user_id }
}

/** `session_service.py:252-255`, `session.py:608-610`. */
export const create: Handler = (call) => {
  const { session_id, auto_commit_policy } = bodyOf(call)
  const stamp = new Date().toISOString().replace(/[-:]/g, '').slice(0, 15).replace('T', '-')
  const generated = `${stamp}-${randomBytes(8).toString('hex')}`
  const id = call.world.features.createTakesId && typeof session_id === 'string' ? session_id : generated
  if (ownSession(call, id) !== undefined) throw new WireError(409, 'ALREADY_EXISTS', `Session '${id}' already exists`)
  const session = createSession(call, id)
  session.autoCommitPolicy = auto_commit_policy
  return ok({
    session_id: id,
    uri: uriOf(session),
    user: userOf(session),
    auto_commit_policy: auto_commit_policy ?? null,
    memory_extraction_config: null,
  })
}

export const list: Handler = (call) => {
  const mine = [...call.world.sessions.values()].filter((session) => session.owner === ownerOf(call.who)).reverse()
  return ok(
    mine.map((session) => ({
      session_id: session.id,
      uri: uriOf(session),
      is_dir: true,
      mod_time: session.updatedAt,
    })),
  )
}

export const get: Handler = (call) => {
  const id = param(call, 0)
  const wanted = call.query.get('auto_create') === 'true'
  const session = ownSession(call, id) ?? (wanted ? createSession(call, id) : undefined)
  if (session === undefined) {
    if (call.world.features.waitFlag) throw sessionMissing(id)
    throw new WireError(call.world.features.softNotFound ? 200 : 404, 'NOT_FOUND', `Session ${id} not found`)
  }
  return ok(metaOf(call.world, session))
}

/** All counts are read back strongly after the write (`test_api_sessions.py:1201-1246`). */
function metaOf(world: World, session: Session): Record<string, unknown> {
  const bare = { session_id: session.id, user: userOf(session), message_count: session.live.length }
  if (!world.features.meta) return bare
  return {
    ...bare,
    created_at: session.createdAt,
    updated_at: session.updatedAt,
    ...(world.features.totalCount && { total_message_count: session.totalMessages }),
    commit_count: session.commitCount,
    memories_extracted: { total: session.memoriesExtracted },
    last_commit_at: session.lastCommitAt,
    last_message_at: session.lastMessageAt,
    pending_tokens: session.pendingTokens,
    keep_recent_count: session.keepRecentCount,
    auto_commit_policy: session.autoCommitPolicy ?? null,
    uri: uriOf(session),
  }
}

/** Extra keys → 400. */
export const config: Handler = (call) => {
  const body = bodyOf(call)
  forbidExtra(body, ['auto_commit_policy', 'memory_extraction_config'])
  const session = requireSession(call)
  if ('auto_commit_policy' in body) session.autoCommitPolicy = body['auto_commit_policy']
  return okBare({ auto_commit_policy: session.autoCommitPolicy ?? null, memory_extraction_config: null })
}

/** `session_service.py:343-363`: delete wins over a pending Phase 2, and a later add starts an empty session. */
export const remove: Handler = (call) =>
  locked(call, () => {
    const session = requireSession(call)
    call.world.sessions.delete(sessionKey(session.owner, session.id))
    return ok({ session_id: session.id })
  })

/** No key makes a repeat safe: the same body twice is two messages (`session.py:1239-1325`). */
export const add: Handler = (call) => {
  const messages = readMessage(call.body, 'body')
  return locked(call, () => ok(append(call, messages)))
}

export const addBatch: Handler = (call) => {
  requireFeature(call, 'batch')
  const { messages } = bodyOf(call)
  if (!Array.isArray(messages)) throw invalid('body.messages', 'Field required', 'missing')
  if (messages.length > 100)
    throw invalid('body.messages', 'List should have at most 100 items after validation', 'too_long')
  const read = messages.flatMap((message: unknown, index) => readMessage(message, `body.messages.${index}`))
  return locked(call, () => ok({ ...append(call, read), added: read.length }))
}

function append(call: Call, messages: readonly StoredMessage[]): Record<string, unknown> {
  const { world, phase2 } = call
  const id = param(call, 0)
  let session = ownSession(call, id)
  if (session === undefined) {
    if (!world.features.addCreates) throw sessionMissing(id)
    session = createSession(call, id)
  }
  session.live.push(...messages)
  session.totalMessages += messages.length
  session.pendingTokens += estimateTokens(messages)
  session.lastMessageAt = session.updatedAt = new Date().toISOString()
  const answer = {
    session_id: id,
    message_count: session.live.length,
    ...(world.features.pendingTokens && { pending_tokens: session.pendingTokens }),
  }
  // The server commits behind the client unless the session's policy says no (`service/session_service.py:525-674`).
  const over = world.autoCommitOver !== undefined && session.live.length > world.autoCommitOver
  if (over && session.autoCommitPolicy !== null) commitPhase1(world, phase2, session, 0)
  return answer
}

/** Answers the counts of this request and keeps nothing (`sessions.py:835-869`, `session.py:856-893`). */
export const used: Handler = (call) => {
  requireSession(call)
  const { contexts, skill } = bodyOf(call)
  return ok({
    session_id: param(call, 0),
    contexts_used: Array.isArray(contexts) ? contexts.length : 0,
    skills_used: isRecord(skill) ? 1 : 0,
  })
}
