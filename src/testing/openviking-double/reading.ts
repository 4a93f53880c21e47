import { ownSession, param, requireFeature, requireSession, type Handler } from './call.js'
import { invalid, ok, sessionMissing, WireError } from './envelope.js'
import { estimateTokens, textOf } from './messages.js'
import type { Archive, StoredMessage, World } from './model.js'
import { countExtraction } from './phase2.js'

/** Older servers neither keep nor show the tags of a message. */
function shown(world: World, message: StoredMessage): object {
  const { turn_id, source_message_ids, message_kind, ...rest } = message
  return world.features.tags
    ? {
        ...rest,
        turn_id: turn_id ?? null,
        message_kind: message_kind ?? null,
        source_message_ids: source_message_ids ?? [],
      }
    : rest
}

const overviewOf = (archive: Archive): string => `# Overview\n${archive.messages.map(textOf).join('\n').slice(0, 2000)}`

/**
 * Pending archives still show their messages; a finished one shows its overview only; a failed one vanishes
 * (`session.py:2967-3080,3909-3928`).
 */
export const context: Handler = (call) => {
  requireFeature(call, 'context')
  const budget = Number(call.query.get('token_budget') ?? 128_000)
  if (!Number.isInteger(budget) || budget < 0)
    throw invalid('query.token_budget', 'Input should be greater than or equal to 0', 'greater_than_equal')
  const session = ownSession(call, param(call, 0))
  if (session === undefined) throw sessionMissing(param(call, 0))
  const done = session.archives.filter((archive) => archive.state === 'done')
  const pending = session.archives.filter((archive) => archive.state === 'pending')
  const messages = [...pending.flatMap((archive) => archive.messages), ...session.live]
  const latest = done.at(-1)
  const overview = latest === undefined ? '' : overviewOf(latest)
  const fits = overview.length / 4 <= budget
  return ok({
    latest_archive_overview: fits ? overview : '',
    pre_archive_abstracts: [],
    messages: messages.map((message) => shown(call.world, message)),
    estimatedTokens: estimateTokens(messages),
    stats: {
      totalArchives: session.archives.length,
      includedArchives: latest !== undefined && fits ? 1 : 0,
      droppedArchives: Math.max(0, done.length - 1),
      failedArchives: session.archives.filter((archive) => archive.state === 'failed').length,
      activeTokens: estimateTokens(session.live),
      archiveTokens: Math.ceil(overview.length / 4),
    },
  })
}

/** A pending or failed archive is 404 like a missing one. */
export const archive: Handler = (call) => {
  requireFeature(call, 'context')
  const name = param(call, 1)
  const found = ownSession(call, param(call, 0))?.archives.find(
    (each) => `archive_${String(each.n).padStart(3, '0')}` === name && each.state === 'done',
  )
  if (found === undefined) {
    const details = call.world.features.softNotFound ? undefined : { type: 'archive', resource: name }
    throw new WireError(call.world.features.softNotFound ? 200 : 404, 'NOT_FOUND', `Archive ${name} not found`, details)
  }
  return ok({
    archive_id: name,
    abstract: overviewOf(found).slice(0, 200),
    overview: overviewOf(found),
    messages: found.messages.map((message) => shown(call.world, message)),
  })
}

/** Live messages only, again at every call, without archive or task (`session_service.py:453-478`). */
export const extract: Handler = (call) => {
  const session = requireSession(call)
  countExtraction(call.world, session.owner, session.live)
  return ok(session.live.map((message) => ({ category: 'events', abstract: textOf(message).slice(0, 200) })))
}
