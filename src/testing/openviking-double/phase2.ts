import { textOf } from './messages.js'
import { sessionKey, type Session, type StoredMessage, type Task, type World } from './model.js'

export type Phase2Outcome = 'completed' | 'cancelled' | 'result-only' | { readonly failed: string }

/**
 * The queue worker: pending → running → terminal, always after the answer to the commit went out
 * (`session.py:2401-2405,2759-2797`). Archives of one session run in order, and a failed one does not block the next
 * (`session.py:3863-3907`).
 */
export class Phase2 {
  holding = false
  /** Extractions that end `failed`, one text each. */
  readonly failures: string[] = []
  /** Extraction completes without a single memory, as weak models do (#4580, #1410, #3012). */
  barren = false
  readonly #world: World
  #stuck = new Set<Task>()

  constructor(world: World) {
    this.#world = world
  }

  wake(): void {
    setImmediate(() => {
      for (const task of this.#world.tasks.values()) if (task.status === 'pending') this.#start(task)
    })
  }

  #start(task: Task): void {
    if (this.holding && task.doomed !== null) return
    // In order from the day Phase 2 had a queue; before, every commit was a task of its own.
    const ordered = !this.#world.features.waitFlag
    const earlier =
      ordered && task.session.archives.some((archive) => archive.n < task.archive.n && archive.state === 'pending')
    if (earlier) return
    update(task, 'running')
    if (task.doomed !== null) this.finish(task, { failed: task.doomed })
    else if (!this.#world.sessions.has(sessionKey(task.owner, task.session.id)))
      // Deleted meanwhile: `session_commit_processor.py:68-84`.
      this.finish(task, { failed: `Session '${task.session.id}' no longer exists` })
    else if (!this.holding) this.#finishAsPlanned(task)
  }

  #finishAsPlanned(task: Task): void {
    const failure = this.failures.shift()
    this.finish(task, failure === undefined ? 'completed' : { failed: failure })
  }

  finish(task: Task, outcome: Phase2Outcome): void {
    if (task.status !== 'running' && task.status !== 'pending' && task.status !== 'cancelling') return
    const { session, archive } = task
    if (outcome === 'completed' || outcome === 'result-only') {
      const count = this.barren ? 0 : archive.messages.length
      task.result = {
        session_id: session.id,
        archive_uri: archiveUri(session, archive.n),
        memories_extracted: count === 0 ? {} : { events: count },
        token_usage: {},
      }
      // The result may be there while the task still runs (`task_tracker.py:693-725`): decide on the status only.
      if (outcome === 'result-only') return
      archive.state = 'done'
      session.memoriesExtracted += count
      // Before v0.2.11 the live file was switched at the end of the background commit (#580).
      if (this.#world.features.waitFlag)
        session.live = session.live.filter((message) => !archive.messages.includes(message))
      countExtraction(this.#world, session.owner, archive.messages)
      update(task, 'completed')
    } else {
      archive.state = 'failed'
      if (outcome !== 'cancelled') task.error = redact(outcome.failed)
      update(task, outcome === 'cancelled' ? 'cancelled' : 'failed')
    }
    this.wake()
  }

  /** Lets the worker go on: one task with a given end, or all of them, and everything that comes after. */
  release(taskId?: string, outcome: Phase2Outcome = 'completed'): void {
    if (taskId !== undefined) {
      const task = this.#world.tasks.get(taskId)
      if (task === undefined) throw new Error(`releasePhase2: there is no task ${taskId}`)
      this.finish(task, outcome)
      return
    }
    this.holding = false
    for (const task of this.#world.tasks.values()) {
      if (task.status === 'running' && !this.#stuck.has(task)) this.finish(task, outcome)
    }
    this.wake()
  }

  /**
   * A hard kill loses nothing that is queued: unacked rows are reset at start (`queue_manager.py:264-318`). A graceful
   * stop cancels what runs and writes a terminal failed marker (`session.py:2197-2241,2799-2805`).
   */
  restart(graceful: boolean): void {
    const { tasks, features } = this.#world
    for (const task of tasks.values()) {
      const open = task.status === 'pending' || task.status === 'running'
      if (!open) {
        task.cached = false
      } else if (!features.durableQueue) {
        if (features.tasksSurvive) this.#stuck.add(task)
        if (features.tasksSurvive) update(task, 'running')
      } else if (graceful && task.status === 'running') {
        this.finish(task, { failed: 'session commit cancelled' })
        task.cached = false
      } else {
        update(task, 'pending')
      }
    }
    if (!features.tasksSurvive) tasks.clear()
    this.wake()
  }
}

function update(task: Task, status: Task['status']): void {
  task.status = status
  task.updatedAt = Date.now() / 1000
}

/** Secrets redacted, at most 500 characters (`task_tracker.py:131-145`). */
const redact = (error: string): string =>
  error.replace(/\b(sk-|key-|token-)[A-Za-z0-9_-]+/g, '[REDACTED]').slice(0, 500)

export const archiveUri = (session: Session, n: number): string =>
  `viking://user/${session.owner.split('/')[1] ?? 'default'}/sessions/${session.id}/history/archive_${String(n).padStart(3, '0')}`

/** A turn that stands twice in one archive was learned twice: the highest multiplicity of its messages counts. */
export function countExtraction(world: World, owner: string, messages: readonly StoredMessage[]): void {
  const turns = new Map<string, Map<string, number>>()
  for (const message of messages) {
    const text = textOf(message)
    if (text !== '') world.memories.push({ owner, uri: `viking://user/memories/events/${message.id}.md`, text })
    const source = message.source_message_ids?.join(',') ?? message.id
    world.stats.extractedMessages[source] = (world.stats.extractedMessages[source] ?? 0) + 1
    if (message.turn_id === undefined) continue
    const seen = turns.get(message.turn_id) ?? new Map<string, number>()
    turns.set(message.turn_id, seen.set(source, (seen.get(source) ?? 0) + 1))
  }
  for (const [turn, seen] of turns)
    world.stats.extracted[turn] = (world.stats.extracted[turn] ?? 0) + Math.max(...seen.values())
}
