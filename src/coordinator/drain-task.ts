import type { Segment, SessionState } from '../core/index.js'

/** One session as this drain has come to know it. */
export interface Task {
  readonly sessionId: string
  state: SessionState
  /** The segment whose call the end of the drain cut short. */
  cutShort: number | undefined
  /** The segment whose call has ended in a way that the ledger could not take yet. */
  unrecorded: number | undefined
  /** What the session looked like when nothing more could be done for it. */
  stuckAt: string | undefined
  isRunning: boolean
  /** Its last attempt failed. */
  isFailing: boolean
  /** Ends the wait for the next attempt before its time. */
  wake: (() => void) | undefined
  /** Owners that `revive` had nothing for, in the last look. */
  gone: Set<string | undefined> | undefined
  /** How often in a row the ledger failed it. */
  failures: number
  /** The first try does not wait for an earlier backoff; after a failure the retry policy holds. */
  isImpatient: boolean
  /** Something happened to the session while it was being worked on: look once more. */
  again: boolean
}

export function newTask(sessionId: string, state: SessionState): Task {
  return {
    sessionId,
    state,
    cutShort: undefined,
    unrecorded: undefined,
    stuckAt: undefined,
    isRunning: false,
    isFailing: false,
    wake: undefined,
    gone: undefined,
    failures: 0,
    isImpatient: true,
    again: false,
  }
}

export function isTouched(task: Task): boolean {
  return task.again
}

export function isDirty(segment: Segment): boolean {
  return segment.state !== 'accepted' && segment.state !== 'parked'
}
