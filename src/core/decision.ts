import type { CommitReason, Range, SessionState } from './session.js'

/** What a transition did to a segment, for those who listen. Ids, numbers and reasons; never message text. */
export interface SegmentFact extends Range {
  readonly owner: string | undefined
  readonly attempt: number
  readonly reason: CommitReason
}

/** The transitions that can be seen from outside. The coordinator adds the session id and emits them. */
export type CoreEvent =
  | { readonly type: 'turn:recorded'; readonly generation: number; readonly owner: string | undefined }
  | ({ readonly type: 'commit:started' } & SegmentFact)
  | ({ readonly type: 'commit:accepted' } & SegmentFact)
  | ({ readonly type: 'commit:succeeded'; readonly late: boolean } & SegmentFact)
  | ({ readonly type: 'commit:failed'; readonly error: string; readonly retryAt: number | undefined } & SegmentFact)
  | ({ readonly type: 'receipt:settled' } & SegmentFact)
  | ({ readonly type: 'receipt:failed'; readonly error: string } & SegmentFact)
  | ({ readonly type: 'segment:parked'; readonly error: string } & SegmentFact)
  | { readonly type: 'session:rotated'; readonly rotatedTo: string }
  | { readonly type: 'session:discarded'; readonly thrownAway: readonly Range[] }

/** A turn for the outbox: kept until its range is committed. `messages` is JSON. */
export interface OutboxEntry {
  readonly generation: number
  readonly at: number
  readonly turnId: string | undefined
  readonly messages: string | undefined
}

/**
 * What one transition came to. A ledger makes all of it durable together, or none of it. It is written only if
 * `state` is another object than the one `decide` was given.
 */
export interface Decision<R> {
  readonly state: SessionState
  readonly result: R
  readonly events: readonly CoreEvent[]
  readonly append?: OutboxEntry
  /** Ranges whose text is not needed any more. */
  readonly drop?: readonly Range[]
  /** When the session next needs attention, epoch milliseconds. */
  readonly wakeAt?: number
  /** Nothing of the session has to be remembered but its numbers; a ledger that does not persist forgets those too. */
  readonly forget?: true
}

const NO_EVENTS: readonly CoreEvent[] = Object.freeze([])

/** An answer that changes nothing. */
export function answer<R>(state: SessionState, result: R): Decision<R> {
  return { state, result, events: NO_EVENTS }
}
