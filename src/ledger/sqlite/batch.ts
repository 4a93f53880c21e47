import { TidemarkError } from '../../base/errors.js'
import { allSegments, type Decision, type Range, type SessionState } from '../../core/index.js'
import { type Changes, noChanges } from './changes.js'
import { encodeOutbox } from './outbox-row.js'
import { encodeSegment } from './segment-row.js'
import { checkSession, encodeSession, hashConstants, type SessionRecord } from './session-row.js'

/** A session in the cache. Its fields move with each decision; if the batch fails, the whole cache is thrown away. */
export interface CachedSession {
  readonly sessionId: string
  id: number
  state: SessionState
  tailHead: number
  heads: Map<number, number> | undefined
  /** The hash of what a mark does not change; `undefined` until it was needed. */
  constants: number | undefined
  /** The durable state while a batch changes it. */
  durable: SessionState | undefined
}

export function cacheSession(record: SessionRecord): CachedSession {
  const { sessionId, id, state, tailHead, heads } = record
  return {
    ...{ sessionId, id, state, tailHead },
    heads: heads === undefined ? undefined : new Map(heads),
    constants: undefined,
    durable: undefined,
  }
}

/** Row numbers are given out here, so that a row can name another one before either is written. */
export interface RowNumbers {
  nextSession: number
  nextOutbox: number
}

/** One turn's text may not be larger than this: SQLite ends at a thousand million bytes, and one turn must not fail a whole batch. */
export const LARGEST_TEXT = 64 * 1024 * 1024

/** Longer chains are not removed within the batch: nobody should wait for it. */
const LONG_CHAIN = 1_000

/** Gathers the decisions of one batch and says in the end which rows differ from what is durable. */
export class Batch {
  readonly #numbers: RowNumbers
  readonly #changes: Changes = noChanges()
  readonly #touched: CachedSession[] = []

  constructor(numbers: RowNumbers) {
    this.#numbers = numbers
  }

  /** Takes a decision over. Throws, before any effect, if it cannot be stored. */
  record(session: CachedSession, decision: Decision<unknown>): void {
    const before = session.state
    const { state: after, append, drop } = decision
    if (append?.messages !== undefined && append.messages.length > LARGEST_TEXT) throw tooLarge(append.messages.length)
    if (append !== undefined && after.tail === undefined) {
      throw new TypeError(`A decision appends generation ${append.generation} to the outbox, but no tail holds it.`)
    }
    if (session.durable === undefined) {
      session.durable = before
      this.#touched.push(session)
      if (session.id === 0) {
        session.id = this.#numbers.nextSession++
        this.#isNew.add(session)
      }
    }
    session.state = after
    if (drop !== undefined) for (const range of drop) this.#drop(session, before, range)
    if (after.tail?.from !== before.tail?.from) moveHeads(session, before)
    if (append !== undefined) {
      const id = this.#numbers.nextOutbox++
      this.#changes.appended.push(encodeOutbox({ id, previous: session.tailHead, session: session.id }, append))
      session.tailHead = id
    }
  }

  readonly #isNew = new Set<CachedSession>()

  #drop(session: CachedSession, before: SessionState, range: Range): void {
    const segment = allSegments(before).find(({ from, to }) => from <= range.from && range.to <= to)
    if (segment === undefined) return
    const isTail = before.tail?.from === segment.from
    const head = isTail ? session.tailHead : (session.heads?.get(segment.from) ?? 0)
    if (head === 0) return
    const after = session.state
    if (after.tail?.from === segment.from || after.segments.some(({ from }) => from === segment.from)) {
      this.#changes.wiped.push({ head, session: session.id, from: range.from, to: range.to })
      return
    }
    if (isTail) session.tailHead = 0
    else session.heads?.delete(segment.from)
    this.#changes.dropped.push({ head, session: session.id, isLong: segment.to - segment.from >= LONG_CHAIN })
  }

  finish(): Changes {
    for (const session of this.#touched) {
      const { durable, state } = session
      session.durable = undefined
      if (durable === undefined) continue
      if (!this.#isNew.has(session) && onlyTailGrew(durable, state)) this.#mark(session)
      else this.#write(session, durable)
    }
    return this.#changes
  }

  #mark(session: CachedSession): void {
    const { sessionId, id, state, tailHead } = session
    session.constants ??= hashConstants(sessionId, id, state)
    const checksum = checkSession(session.constants, state, tailHead)
    this.#changes.marked.push([state.generation, state.tail?.span ?? null, tailHead, checksum, id])
  }

  #write(session: CachedSession, durable: SessionState): void {
    const { sessionId, id, state, tailHead } = session
    session.constants = hashConstants(sessionId, id, state)
    const row = encodeSession(sessionId, state, tailHead, checkSession(session.constants, state, tailHead))
    if (this.#isNew.has(session)) this.#changes.inserted.push([id, ...row])
    else this.#changes.updated.push([...row, id])
    if (durable.segments === state.segments) return
    const known = new Set(durable.segments)
    for (const segment of state.segments) {
      if (known.has(segment)) continue
      this.#changes.segments.push(encodeSegment(id, segment, session.heads?.get(segment.from) ?? 0))
    }
    const kept = new Set(state.segments.map(({ from }) => from))
    for (const { from } of durable.segments) if (!kept.has(from)) this.#changes.removed.push([id, from])
  }
}

/** A segment keeps its first generation for life: its chain goes with it from the tail to a row of its own and back. */
function moveHeads(session: CachedSession, before: SessionState): void {
  const after = session.state
  const leaving = before.tail?.from
  if (leaving !== undefined && session.tailHead !== 0 && after.segments.some(({ from }) => from === leaving)) {
    session.heads ??= new Map()
    session.heads.set(leaving, session.tailHead)
  }
  const entering = after.tail?.from
  session.tailHead = (entering === undefined ? undefined : session.heads?.get(entering)) ?? 0
  if (entering !== undefined) session.heads?.delete(entering)
  if (session.heads?.size === 0) session.heads = undefined
}

function onlyTailGrew(durable: SessionState, state: SessionState): boolean {
  const one = durable.tail
  const other = state.tail
  return (
    one !== undefined &&
    other !== undefined &&
    one.from === other.from &&
    one.owner === other.owner &&
    one.since === other.since &&
    one.gaps === other.gaps &&
    one.gapBefore === other.gapBefore &&
    durable.segments === state.segments &&
    durable.token === state.token &&
    durable.retracted === state.retracted &&
    durable.boundary === state.boundary &&
    durable.boundedAt === state.boundedAt &&
    durable.rotatedTo === state.rotatedTo
  )
}

function tooLarge(length: number): TidemarkError {
  return new TidemarkError(
    'TURN_TOO_LARGE',
    `The messages of one turn are ${length} characters long; the ledger stores at most ${LARGEST_TEXT}. ` +
      'Nothing was recorded. Hand over less, or keep the text elsewhere and give a `transcript` source.',
    { details: { length, largest: LARGEST_TEXT }, retryable: false },
  )
}
