import { bodyOf, locked, param, requireFeature, requireSession, type Call, type Handler } from './call.js'
import { invalid, ok, okBare, WireError, type Answer } from './envelope.js'
import { commitPhase1 } from './commit.js'
import { ownerOf, type Task } from './model.js'

const MAX_LIST = 200

/** Section "commit": an empty body is allowed, unknown keys are ignored, the turn fields need a retention mode. */
export const commit: Handler = async (call) => {
  const body = bodyOf(call)
  const keep = body['keep_recent_count'] ?? 0
  if (typeof keep !== 'number' || !Number.isInteger(keep) || keep < 0 || keep > 10_000)
    throw invalid('body.keep_recent_count', 'Input should be between 0 and 10000')
  const turnFields = ['keep_recent_turn_count', 'retained_message_token_budget', 'min_raw_tail_steps']
  if (body['retention_mode'] === undefined && turnFields.some((field) => field in body))
    throw invalid('body', 'Value error, turn retention fields require retention_mode')
  const session = requireSession(call)
  const { waitFlag } = call.world.features
  const running = [...call.world.tasks.values()].some(
    (task) => task.session === session && (task.status === 'pending' || task.status === 'running'),
  )
  if (waitFlag && running)
    throw new WireError(200, 'CONFLICT', `Session ${session.id} already has a commit in progress`)
  const { result, task } = await locked(call, () =>
    commitPhase1(call.world, call.phase2, requireSession(call), keep, call.fault),
  )
  if (!waitFlag || task === undefined || call.query.get('wait') === 'false') return okBare(result)
  return finishedInline(call, task)
}

/** v0.2.6–v0.2.10 without `wait=false`: the answer comes when extraction is over. */
async function finishedInline(call: Call, task: Task): Promise<Answer> {
  while (task.status === 'pending' || task.status === 'running') {
    await new Promise((resolve) => setImmediate(resolve))
    if (!call.alive()) break
  }
  if (task.status !== 'completed') throw new WireError(500, 'INTERNAL', 'Internal server error')
  return ok({
    session_id: task.session.id,
    status: 'committed',
    memories_extracted: task.archive.messages.length,
    active_count_updated: 0,
    archived: true,
  })
}

const iso = (seconds: number): string => new Date(seconds * 1000).toISOString()

const shown = (task: Task): object => ({
  task_id: task.id,
  task_type: 'session_commit',
  status: task.status,
  created_at: task.createdAt,
  updated_at: task.updatedAt,
  created_at_iso: iso(task.createdAt),
  updated_at_iso: iso(task.updatedAt),
  resource_id: task.session.id,
  meta: {},
  stage: null,
  result: task.result,
  error: task.error,
})

/** Another owner's task is 404; dev mode reads only the process cache (`tasks.py:35-54`, `task_tracker.py:840-855`). */
function visible(call: Call, task: Task): boolean {
  const mine = task.owner === ownerOf(call.who) || (call.who.role === 'root' && call.world.authMode !== 'dev')
  return mine && (call.world.authMode !== 'dev' || task.cached)
}

function requireTask(call: Call): Task {
  const id = param(call, 0)
  const found = call.world.tasks.get(id)
  if (found === undefined || !visible(call, found))
    throw new WireError(404, 'NOT_FOUND', `Task not found: ${id}`, { resource: id, type: 'task' })
  return found
}

export const task: Handler = (call) => ok(shown(requireTask(call)))

/** Newest first (`task_tracker.py:872-915`). */
export const tasks: Handler = (call) => {
  const limit = Number(call.query.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIST)
    throw invalid('query.limit', `Input should be between 1 and ${MAX_LIST}`)
  const wanted = (key: string, value: string): boolean => (call.query.get(key) ?? value) === value
  const found = [...call.world.tasks.values()]
    .filter((each) => visible(call, each))
    .filter((each) => wanted('task_type', 'session_commit') && wanted('status', each.status))
    .filter((each) => wanted('resource_id', each.session.id))
    .reverse()
  return ok(found.slice(0, limit).map(shown))
}

/** ROOT → 403; already terminal → 412. */
export const cancel: Handler = (call) => {
  requireFeature(call, 'cancel')
  if (call.who.role === 'root') throw new WireError(403, 'PERMISSION_DENIED', 'ROOT cannot cancel tasks')
  const found = requireTask(call)
  if (found.status !== 'pending' && found.status !== 'running')
    throw new WireError(412, 'FAILED_PRECONDITION', `Task is already ${found.status}`)
  call.phase2.finish(found, 'cancelled')
  return ok(shown(found))
}
