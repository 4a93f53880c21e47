import { outputOf, type RunView } from './run-output.js'
import { clearPending, placeOutput, placePendingMessage, spliceMessages } from './transcript.js'
import type { Interruption, Message, Recovery, Session } from './types.js'

export interface RecoveryLimits {
  /** How long a pending turn of an earlier process is left alone. @default 30000 */
  readonly graceMs: number
  /** How many reads that find a journal without output it takes to give up. @default 12 */
  readonly maxAttempts: number
  /** How long after the interruption was first seen to give up. @default 86400000 */
  readonly giveUpMs: number
}

export const RECOVERY_DEFAULTS: RecoveryLimits = Object.freeze({
  graceMs: 30_000,
  maxAttempts: 12,
  giveUpMs: 24 * 60 * 60 * 1_000,
})

const NO_OUTPUT = Object.freeze({ messages: [], toolCalls: [] })

const MARKER_TEXT: Readonly<Record<Interruption['state'], string>> = Object.freeze({
  retrying: 'This answer was interrupted. What was already received may still be recovered.',
  recovered: 'This answer was interrupted. What was received before is above.',
  lost: 'This answer was interrupted, and what was received before could not be recovered.',
  nothing: 'This answer was interrupted before anything of it was kept.',
})

/**
 * Ends the pending turn of a run that is gone. Changes only the session in memory, and the result depends only on the
 * session and the view, so a crash before the save and a repeat give the same transcript.
 * Returns the runs whose output is complete.
 */
export function interruptTurn(session: Session, view: RunView | undefined, now: number): string[] {
  const runId = session.activeRunId
  const startedAt = session.pendingStartedAt ?? session.updatedAt
  const userIndex = placePendingMessage(session)
  clearPending(session)
  if (view === undefined || runId === null) {
    session.messages.push(marker({ state: 'nothing' }, startedAt))
    return []
  }
  const completed = view.ending === 'done'
  const output = outputOf(runId, view.events, { partial: !completed })
  if (output.messages.length > 0) placeOutput(session, userIndex, output)
  if (completed) return [runId]
  const hasOutput = output.messages.length > 0
  const state: Interruption = hasOutput
    ? { state: 'recovered' }
    : { state: 'retrying', runId, attempts: 0, firstSeenAt: now }
  session.messages.push(marker(state, view.events.at(-1)?.at ?? startedAt))
  if (hasOutput && view.ending !== undefined) return [runId]
  session.recoveries = [...session.recoveries, { runId, firstSeenAt: now, ...merged(view, hasOutput) }]
  return []
}

/** What a later read can do for an interrupted run, before it looks at the journal. */
export function isExpired(recovery: Recovery, now: number, { giveUpMs }: RecoveryLimits): boolean {
  return now - recovery.firstSeenAt >= giveUpMs
}

/** Gives up on a run: a marker that still hopes says that nothing came; output that is there stays. */
export function giveUp(session: Session, recovery: Recovery): void {
  const { markerAt } = locate(session, recovery.runId)
  const current = session.messages[markerAt]
  if (current?.interruption?.state === 'retrying')
    session.messages[markerAt] = marker({ state: 'lost' }, current.timestamp)
  forget(session, recovery.runId)
}

/**
 * Merges what the journal shows now. Returns whether the session changed, and whether the run's output is complete.
 */
export function retryRecovery(
  session: Session,
  recovery: Recovery,
  view: RunView,
  limits: RecoveryLimits,
): { changed: boolean; finished: boolean } {
  const { runId } = recovery
  const { start, count, markerAt } = locate(session, runId)
  if (start === -1) {
    // The user undid the turn: there is no place for its output any more.
    forget(session, runId)
    return { changed: true, finished: true }
  }
  const completed = view.ending === 'done'
  const output = outputOf(runId, view.events, { partial: !completed })
  const hasOutput = output.messages.length > 0
  if (!hasOutput && !completed) return costAttempt(session, recovery, view, limits, markerAt)
  const isNew = view.events.length > recovery.events || completed || view.ending !== undefined
  if (!isNew || view.events.length < recovery.events) return { changed: false, finished: false }
  const current = session.messages[markerAt]
  spliceMessages(session, start, count, output)
  const moved = markerAt === -1 ? -1 : markerAt + output.messages.length - count
  if (completed && moved !== -1) spliceMessages(session, moved, 1, NO_OUTPUT)
  else if (current?.interruption?.state === 'retrying') {
    session.messages[moved] = marker({ state: 'recovered' }, current.timestamp)
  }
  if (view.ending !== undefined) forget(session, runId)
  else replaceRecovery(session, { ...recovery, ...merged(view, true) })
  return { changed: true, finished: view.ending !== undefined }
}

function costAttempt(
  session: Session,
  recovery: Recovery,
  view: RunView,
  { maxAttempts }: RecoveryLimits,
  markerAt: number,
): { changed: boolean; finished: boolean } {
  const current = session.messages[markerAt]
  if (view.arriving || current?.interruption?.state !== 'retrying') return { changed: false, finished: false }
  const attempts = current.interruption.attempts + 1
  if (attempts >= maxAttempts) giveUp(session, recovery)
  else session.messages[markerAt] = marker({ ...current.interruption, attempts }, current.timestamp)
  return { changed: true, finished: attempts >= maxAttempts }
}

/** Where a run's recovered messages stand, and its marker; `start` is where output goes, -1 if there is no place. */
function locate(session: Session, runId: string): { start: number; count: number; markerAt: number } {
  const { messages } = session
  const retrying = messages.findIndex(
    ({ interruption }) => interruption?.state === 'retrying' && interruption.runId === runId,
  )
  const start = messages.findIndex(({ recovered }) => recovered?.runId === runId)
  if (start === -1) return { start: retrying, count: 0, markerAt: retrying }
  let end = start
  while (messages[end]?.recovered?.runId === runId) end += 1
  return { start, count: end - start, markerAt: messages[end]?.interruption === undefined ? -1 : end }
}

function merged(view: RunView, hasOutput: boolean): { lastSeq: number; events: number } {
  // Without output nothing was merged, so everything is looked at again.
  if (!hasOutput) return { lastSeq: 0, events: 0 }
  return { lastSeq: view.events.at(-1)?.seq ?? 0, events: view.events.length }
}

function marker(interruption: Interruption, timestamp: number): Message {
  return { role: 'assistant', content: MARKER_TEXT[interruption.state], timestamp, interruption }
}

function forget(session: Session, runId: string): void {
  session.recoveries = session.recoveries.filter((recovery) => recovery.runId !== runId)
}

function replaceRecovery(session: Session, next: Recovery): void {
  session.recoveries = session.recoveries.map((recovery) => (recovery.runId === next.runId ? next : recovery))
}
