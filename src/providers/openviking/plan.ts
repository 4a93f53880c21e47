import type { SessionView, TaskView } from './api.js'

/**
 * What an earlier attempt left in a provider session. Pure: counts in, one word out.
 *
 * - `landed`: the commit was made; only its outcome is open.
 * - `full`: every message is there, once; commit it. Committing twice is harmless, the second is skipped.
 * - `partial`: some messages are there.
 * - `partial-archived`: some messages are there and the server committed them on its own account.
 * - `spoilt`: more messages than the segment has: a repeat of something. It must never be committed.
 */
export type Found = 'landed' | 'full' | 'partial' | 'partial-archived' | 'spoilt'

export function assess(view: SessionView, expected: number, tasks: readonly TaskView[]): Found {
  const added = view.total ?? view.live
  if (added > expected) return 'spoilt'
  if (isArchived(view, tasks)) return view.total !== undefined && added < expected ? 'partial-archived' : 'landed'
  return added === expected ? 'full' : 'partial'
}

function isArchived(view: SessionView, tasks: readonly TaskView[]): boolean {
  if ((view.commits ?? 0) > 0) return true
  // A fault after the live file was rewritten leaves the old commit count: what is neither live nor new was archived.
  if (view.total !== undefined) return view.live < view.total
  // Servers that say neither know no empty session: one exists by its first message, so none left means archived.
  if (view.commits === undefined && view.live === 0) return true
  // They keep the messages live while they extract: only the task list tells.
  return tasks.some((task) => task.state !== 'failed' || view.live === 0)
}

export type Verdict = 'completed' | 'failed' | 'mixed' | 'open' | 'unlisted'

/** What became of a landed commit, as far as its tasks tell. Usually there is one. */
export function verdictOf(tasks: readonly TaskView[]): Verdict {
  if (tasks.length === 0) return 'unlisted'
  if (tasks.some((task) => task.state === 'open')) return 'open'
  const failed = tasks.filter((task) => task.state === 'failed').length
  return failed === 0 ? 'completed' : failed === tasks.length ? 'failed' : 'mixed'
}

/** Which tasks carry a landed segment: those that did not fail, and if all did, the newest. */
export function carriersOf(tasks: readonly TaskView[]): readonly TaskView[] {
  const alive = tasks.filter((task) => task.state !== 'failed')
  return alive.length > 0 ? alive : tasks.slice(0, 1)
}

export const archiveName = (index: number): string => `archive_${String(index).padStart(3, '0')}`
