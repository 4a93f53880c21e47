import type { SessionState } from '../../core/index.js'
import type { SessionRecord } from './session-row.js'

/** A session in the cache. Its fields move with each decision; if the batch fails, the whole cache is thrown away. */
export class CachedSession {
  readonly sessionId: string
  id: number
  state: SessionState
  tailHead: number
  heads: Map<number, number> | undefined
  /** The hash of what a mark does not change; `undefined` until it was needed. */
  constants: number | undefined = undefined
  /** The durable state while a batch changes it. */
  durable: SessionState | undefined = undefined
  /** The first row of the outbox that its own row does not know of; 0 if there is none. */
  unwritten = 0
  /** The batch changes more than the outbox tells. */
  needsRow = false

  constructor({ sessionId, id, state, tailHead, heads }: SessionRecord) {
    this.sessionId = sessionId
    this.id = id
    this.state = state
    this.tailHead = tailHead
    this.heads = heads === undefined ? undefined : new Map(heads)
  }
}
