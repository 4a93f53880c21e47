import { TidemarkError } from '../../base/errors.js'
import { allSegments, type Decision, type Range, type SessionState } from '../../core/index.js'
import type { CachedSession } from './cached-session.js'
import { type Changes, noChanges } from './changes.js'
import { pushOutbox } from './outbox-row.js'
import { encodeSegment } from './segment-row.js'
import { checkSession, encodeMark, encodeSession, hashConstants } from './session-row.js'
import type { WriteBehind } from './write-behind.js'

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
  readonly #behind: WriteBehind
  readonly #changes: Changes = noChanges()
  readonly #touched: CachedSession[] = []
  readonly #isNew = new Set<CachedSession>()

  constructor(numbers: RowNumbers, behind: WriteBehind) {
    this.#numbers = numbers
    this.#behind = behind
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
    // The row before it in the tail is what ties a row of the outbox to its session.
    if (append === undefined || drop !== undefined || session.tailHead === 0) session.needsRow = true
    if (append !== undefined) {
      const id = this.#numbers.nextOutbox++
      pushOutbox(this.#changes.appended, { id, previous: session.tailHead, session: session.id }, append)
      session.tailHead = id
      if (session.unwritten === 0) session.unwritten = id
    }
  }

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

  /** Rows of sessions that lag behind are written too, the oldest of them or all. */
  finish(which: 'old' | 'all'): Changes {
    for (const session of this.#touched) {
      const { durable, state, needsRow } = session
      session.durable = undefined
      session.needsRow = false
      if (durable === undefined) continue
      if (this.#isNew.has(session) || !onlyTailGrew(durable, state)) this.#write(session, durable)
      else if (needsRow) this.#mark(session)
      else this.#behind.defer(session)
    }
    const { nextOutbox } = this.#numbers
    for (const session of this.#behind.due(nextOutbox, which)) this.#mark(session)
    const note = this.#behind.takeNote(nextOutbox, which)
    if (note !== undefined) this.#changes.noted.push(note)
    return this.#changes
  }

  #mark(session: CachedSession): void {
    this.#behind.noteWritten(session)
    const { sessionId, id, state, tailHead } = session
    session.constants ??= hashConstants(sessionId, id, state)
    this.#changes.marked.push(encodeMark(id, session.constants, state, tailHead))
  }

  #write(session: CachedSession, durable: SessionState): void {
    this.#behind.noteWritten(session)
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
