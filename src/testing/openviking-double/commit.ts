import { randomUUID } from 'node:crypto'
import { internalError, WireError } from './envelope.js'
import { estimateTokens } from './messages.js'
import type { Session, Task, World } from './model.js'
import { archiveUri, type Phase2 } from './phase2.js'

/** Where Phase 1 breaks; the two `killed` ones take the process with them (`session.py:2145-2164`). */
export type Phase1Fault = 'before-rewrite' | 'after-rewrite' | 'killed-before-rewrite' | 'killed-after-rewrite'

/** The process is gone: nothing more is done and nothing is answered. */
export class Killed extends Error {}

export interface Committed {
  readonly result: Record<string, unknown>
  readonly task?: Task
}

/**
 * Phase 1, under the session's lock: archive index, archive, queue, task, live rewrite, meta, all before the answer
 * (`session.py:1896-2166,1958-1969,2046-2187`).
 */
export function commitPhase1(
  world: World,
  phase2: Phase2,
  session: Session,
  keepRecent: number,
  fault?: Phase1Fault,
): Committed {
  const blocking = world.features.failedArchiveBlocks && session.archives.find((archive) => archive.state === 'failed')
  if (blocking) {
    const name = `archive_${String(blocking.n).padStart(3, '0')}`
    throw new WireError(412, 'FAILED_PRECONDITION', `Session ${session.id} has unresolved failed archive ${name}`)
  }
  session.keepRecentCount = keepRecent
  const archived = session.live.slice(0, Math.max(0, session.live.length - keepRecent))
  if (archived.length === 0) {
    // Nothing is pending any more, although messages inside the window are live and not extracted (`session.py:2018-2044`).
    session.pendingTokens = 0
    return { result: nothing(world, session) }
  }
  const archive = {
    n: Math.max(session.commitCount, ...session.archives.map((each) => each.n)) + 1,
    messages: archived,
    state: 'pending' as 'pending' | 'failed',
  }
  session.archives.push(archive)
  const task = queueTask(world, session, archive)
  phase2.wake()
  if (fault === 'before-rewrite' || fault === 'killed-before-rewrite') {
    archive.state = 'failed'
    task.doomed = 'Root rewrite was not durably completed before the process stopped'
    throw fault === 'before-rewrite' ? internalError() : new Killed()
  }
  if (!world.features.waitFlag) session.live = session.live.slice(archived.length)
  if (fault === 'after-rewrite') {
    // Meta was not saved: the live file is empty and `commit_count` still the old one.
    archive.state = 'failed'
    task.doomed = 'Phase 1 did not complete'
    throw internalError()
  }
  session.commitCount = archive.n
  session.lastCommitAt = new Date().toISOString()
  session.pendingTokens = 0
  // Killed before the ready marker: the redelivery reconciles and runs Phase 2 (`session.py:2197-2241`).
  if (fault === 'killed-after-rewrite') throw new Killed()
  const result = {
    session_id: session.id,
    status: 'accepted',
    task_id: task.id,
    ...(world.features.waitFlag
      ? { message: 'Commit is processing in the background' }
      : { archive_uri: archiveUri(session, archive.n), archived: true, trace_id: null }),
    ...(world.features.saysSkipped && {
      estimated_active_tokens: estimateTokens(session.live),
      budget_exceeded: false,
    }),
  }
  return { result, task }
}

function nothing(world: World, session: Session): Record<string, unknown> {
  const shared = { session_id: session.id, task_id: null, archive_uri: null, archived: false, trace_id: null }
  if (!world.features.saysSkipped) return { ...shared, status: 'accepted' }
  const reason = session.live.length === 0 ? 'no_messages' : 'all_within_keep_window'
  return { ...shared, status: 'skipped', reason }
}

function queueTask(world: World, session: Session, archive: Session['archives'][number]): Task {
  const now = Date.now() / 1000
  const task: Task = {
    id: randomUUID(),
    owner: session.owner,
    session,
    archive,
    createdAt: now,
    updatedAt: now,
    status: 'pending',
    result: null,
    error: null,
    cached: true,
    doomed: null,
  }
  world.tasks.set(task.id, task)
  return task
}
