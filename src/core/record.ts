import { answer, type Decision } from './decision.js'
import { closeTail, newestKept, type Range, type SessionState, type Tail } from './session.js'
import { addTurnId, findTurnId } from './turn-ids.js'

export interface Turn {
  readonly owner: string | undefined
  readonly at: number
  readonly turnId: string | undefined
  /** The messages as JSON, if they were handed over. */
  readonly messages: string | undefined
}

/**
 * One more completed turn (L4, L5, L12). The tail grows if it has the same owner; what was claimed once is no longer
 * the tail, so a turn that completes during a commit is never part of it.
 */
export function recordTurn(state: SessionState, turn: Turn): Decision<number> {
  const { owner, at, turnId, messages } = turn
  if (turnId !== undefined) {
    const known = findTurnId(state.turnIds, turnId)
    if (known !== undefined) return answer(state, known)
  }
  const generation = state.generation + 1
  const { tail } = state
  const grows = tail !== undefined && tail.owner === owner
  const next: SessionState = {
    generation,
    token: state.token,
    segments: grows || tail === undefined ? state.segments : [...state.segments, closeTail(state, tail)],
    tail: grows ? growTail(state, tail, at) : startTail(state, owner, at),
    retracted: 0,
    // A conversation that went on elsewhere has no boundary of its own to wait for (B7).
    boundary: state.rotatedTo === undefined ? state.boundary : { reason: 'rotate', through: generation },
    boundedAt: state.boundedAt,
    rotatedTo: state.rotatedTo,
    turnIds: turnId === undefined ? state.turnIds : addTurnId(state.turnIds, turnId, generation),
  }
  const decision: Decision<number> = {
    state: next,
    result: generation,
    events: [{ type: 'turn:recorded', generation, owner }],
  }
  return messages === undefined && turnId === undefined
    ? decision
    : { ...decision, append: { generation, at, turnId, messages } }
}

function startTail(state: SessionState, owner: string | undefined, at: number): Tail {
  return { from: state.generation + 1, owner, since: at, span: 0, gaps: undefined, gapBefore: state.retracted }
}

function growTail(state: SessionState, tail: Tail, at: number): Tail {
  const gap: Range | undefined =
    state.retracted === 0 ? undefined : { from: newestKept(state) + 1, to: state.generation }
  return {
    from: tail.from,
    owner: tail.owner,
    since: tail.since,
    span: Math.max(tail.span, at - tail.since),
    gaps: gap === undefined ? tail.gaps : [...(tail.gaps ?? []), gap],
    gapBefore: tail.gapBefore,
  }
}
