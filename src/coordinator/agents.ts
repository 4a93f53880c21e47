import { randomUUID } from 'node:crypto'
import { checkId } from '../base/ids.js'
import { ownsWork, type SessionState } from '../core/index.js'
import type { MemoryAgent } from './agent.js'
import type { ProviderKey } from './slots.js'

/** One live agent object, however many sessions it serves. */
export class AgentHandle {
  readonly agent: MemoryAgent
  readonly id: string
  readonly provider: ProviderKey
  /** Whether the id is its own, so that `revive` can be asked for it again. */
  readonly isNamed: boolean
  /** In how many sessions it is the current agent or owns work, and how many calls and turns of it are under way. */
  uses = 0
  /** Close it as soon as nothing needs it: somebody evicted it, or we revived it. */
  isDoomed = false
  /** Set when it is being closed: that happens once. */
  closing: Promise<void> | undefined
  /** Rotated sessions whose late marks are still its own, oldest first; as many as are worth remembering. */
  readonly formerIds = new Set<string>()
  /** The record of every session that knows this agent and nothing else: shared, so that a session costs no object. */
  readonly alone: LiveAgents

  constructor(agent: MemoryAgent) {
    this.agent = agent
    this.isNamed = agent.agentId !== undefined
    this.id = agent.agentId === undefined ? `anonymous:${randomUUID()}` : checkId(agent.agentId, 'agent.agentId')
    this.provider = agent.provider ?? agent
    this.alone = Object.freeze({ current: this, owners: NOBODY, moved: undefined })
  }
}

/** The live agents of one session. */
interface LiveAgents {
  readonly current: AgentHandle | undefined
  /** Earlier agents that may own work. */
  readonly owners: readonly AgentHandle[]
  /** Where the current agent went when the session was rotated: it owns what is still marked here (B7). */
  readonly moved: AgentHandle | undefined
}

/** A late mark comes soon, or names its agent; an agent that serves everybody would remember every rotation for ever (B9). */
const MOST_FORMER_IDS = 1_000

/** Who stood where before somebody came. */
export interface Standing {
  readonly live: LiveAgents | undefined
  /** Whether the newcomer was to be closed. */
  readonly isDoomed: boolean
}

const NOBODY: readonly AgentHandle[] = Object.freeze([])

/** Which agents are live, for which sessions, and who still needs them. Everything here is synchronous. */
export class Agents {
  readonly #handles = new WeakMap<MemoryAgent, AgentHandle>()
  readonly #live = new Map<string, LiveAgents>()
  readonly #onUnused: (handle: AgentHandle) => void

  /** `onUnused` is told of a doomed agent that nothing needs any more. */
  constructor(onUnused: (handle: AgentHandle) => void) {
    this.#onUnused = onUnused
  }

  handleOf(agent: MemoryAgent): AgentHandle {
    const known = this.#handles.get(agent)
    if (known !== undefined) return known
    checkAgent(agent)
    const handle = new AgentHandle(agent)
    this.#handles.set(agent, handle)
    return handle
  }

  /** Its handle, unless it was never seen or is closed. */
  known(agent: MemoryAgent): readonly AgentHandle[] {
    const handle = this.#handles.get(agent)
    return handle === undefined ? NOBODY : [handle]
  }

  /** Makes it the current agent (L2). Who was it before may own work, and is kept until that is known. */
  register(sessionId: string, handle: AgentHandle): boolean {
    const live = this.#live.get(sessionId)
    if (live?.current === handle) return false
    // Whoever brings an agent back wants it open.
    handle.isDoomed = false
    if (live === undefined) {
      handle.uses += 1
      this.#live.set(sessionId, handle.alone)
      return true
    }
    // Of several objects with one id the last one counts (L11).
    const owners = earlierOwners(live).filter((owner) => owner.id !== handle.id)
    this.#set(sessionId, { current: handle, owners, moved: undefined })
    return true
  }

  /** What `reinstate` needs if the newcomer turns out to have come for nothing. */
  standing(sessionId: string, newcomer: AgentHandle): Standing | undefined {
    const live = this.#live.get(sessionId)
    return live?.current === newcomer ? undefined : { live, isDoomed: newcomer.isDoomed }
  }

  /** Undoes a registration, unless somebody else has come since or both are the same agent (L11). */
  reinstate(sessionId: string, newcomer: AgentHandle, { live: before, isDoomed }: Standing): boolean {
    const live = this.#live.get(sessionId)
    if (live?.current !== newcomer || before?.current?.id === newcomer.id) return false
    const current = isOpen(before?.current) ? before?.current : undefined
    const moved = isOpen(before?.moved) ? before?.moved : undefined
    this.#set(sessionId, { current, owners: earlierOwners(live).filter((owner) => owner !== current), moved })
    if (isDoomed) this.doom(newcomer)
    return true
  }

  unregister(sessionId: string): AgentHandle | undefined {
    const live = this.#live.get(sessionId)
    if (live?.current === undefined) return undefined
    this.#set(sessionId, { ...live, current: undefined, owners: earlierOwners(live) })
    return live.current
  }

  /** Keeps an agent that owns work of the session without being its current agent. */
  keep(sessionId: string, handle: AgentHandle): void {
    const live = this.#live.get(sessionId)
    if (live?.current === handle || live?.owners.includes(handle) === true) return
    const owners = (live?.owners ?? NOBODY).filter((owner) => owner.id !== handle.id)
    this.#set(sessionId, { current: live?.current, moved: live?.moved, owners: [...owners, handle] })
  }

  /** An agent has recorded a turn: it owns work now, even if another one has taken its place meanwhile (L3). */
  noteOwner(sessionId: string, handle: AgentHandle, state: SessionState): void {
    if (this.#live.get(sessionId) === handle.alone) return
    this.keep(sessionId, handle)
    this.prune(sessionId, state)
  }

  current(sessionId: string): AgentHandle | undefined {
    return this.#live.get(sessionId)?.current
  }

  /** The owner of a turn that is completed now without naming one. */
  ownerOfNext(sessionId: string): AgentHandle | undefined {
    const live = this.#live.get(sessionId)
    return live === undefined ? undefined : (live.current ?? live.moved)
  }

  /** Has it gone on from here under another id? Then it is not the current agent here, and owns what still comes (B7). */
  hasMoved(sessionId: string, handle: AgentHandle): boolean {
    const live = this.#live.get(sessionId)
    return live?.current === undefined && live?.moved === handle
  }

  find(sessionId: string, agentId: string): AgentHandle | undefined {
    const live = this.#live.get(sessionId)
    if (live === undefined) return undefined
    // An earlier owner with the id of the current agent was given after that (L11).
    const owner = live.owners.find(({ id }) => id === agentId)
    if (owner !== undefined) return owner
    return [live.current, live.moved].find((handle) => handle?.id === agentId)
  }

  /** Current agent and earlier owners. */
  all(sessionId: string): readonly AgentHandle[] {
    const live = this.#live.get(sessionId)
    if (live === undefined) return NOBODY
    return live.current === undefined ? live.owners : [...live.owners, live.current]
  }

  /**
   * Rotation: the current agent goes to the new id, unless another one came there meanwhile; marks that still come under
   * the old one are its own.
   */
  move(oldId: string, newId: string): void {
    const live = this.#live.get(oldId)
    if (live?.current === undefined) return
    const { current } = live
    if (this.current(newId) === undefined) this.register(newId, current)
    this.#set(oldId, { current: undefined, owners: earlierOwners(live), moved: current })
    const [oldest] = current.formerIds
    if (oldest !== undefined && current.formerIds.size > MOST_FORMER_IDS) this.#forgetFormer(oldest)
  }

  /** Lets go of earlier agents that own nothing any more, now that the session's state is known. */
  prune(sessionId: string, state: SessionState): void {
    const live = this.#live.get(sessionId)
    if (live === undefined || live.owners.length === 0) return
    const owners = live.owners.filter((owner) => ownsWork(state, owner.id))
    if (owners.length < live.owners.length) this.#set(sessionId, { ...live, owners })
  }

  /** Lets go of these agents although they own work: they can be revived. */
  dismiss(sessionId: string, handles: readonly AgentHandle[]): void {
    const live = this.#live.get(sessionId)
    if (live === undefined) return
    this.#set(sessionId, { ...live, owners: live.owners.filter((owner) => !handles.includes(owner)) })
  }

  forget(sessionId: string): AgentHandle | undefined {
    const current = this.#live.get(sessionId)?.current
    this.#set(sessionId, { current: undefined, owners: NOBODY, moved: undefined })
    return current
  }

  /** Keeps the agent open while a call into it, or a turn of it, is under way. */
  pin(handle: AgentHandle): void {
    handle.uses += 1
  }

  unpin(handle: AgentHandle): void {
    handle.uses -= 1
    if (handle.uses === 0) this.#settle(handle)
  }

  /** Closes it now if nothing needs it, else as soon as that is so. */
  doom(handle: AgentHandle): void {
    handle.isDoomed = true
    if (handle.uses === 0) this.#settle(handle)
  }

  #set(sessionId: string, next: LiveAgents): void {
    const before = this.all(sessionId)
    const moved = this.#live.get(sessionId)?.moved
    if (moved !== next.moved) {
      moved?.formerIds.delete(sessionId)
      next.moved?.formerIds.add(sessionId)
    }
    const isSimple = next.owners.length === 0 && next.moved === undefined
    if (!isSimple) this.#live.set(sessionId, next)
    else if (next.current === undefined) this.#live.delete(sessionId)
    else this.#live.set(sessionId, next.current.alone)
    const after = this.all(sessionId)
    for (const handle of after) if (!before.includes(handle)) handle.uses += 1
    for (const handle of before) {
      if (after.includes(handle)) continue
      handle.uses -= 1
      if (handle.uses === 0) this.#settle(handle)
    }
  }

  /** What is still marked under this id is nobody's until an agent comes. */
  #forgetFormer(sessionId: string): void {
    const live = this.#live.get(sessionId)
    if (live !== undefined) this.#set(sessionId, { ...live, moved: undefined })
  }

  /** Nothing uses this agent any more. */
  #settle(handle: AgentHandle): void {
    for (const formerId of handle.formerIds) this.#forgetFormer(formerId)
    if (!handle.isDoomed || handle.closing !== undefined) return
    this.#handles.delete(handle.agent)
    this.#onUnused(handle)
  }
}

function isOpen(handle: AgentHandle | undefined): boolean {
  return handle !== undefined && !handle.isDoomed && handle.closing === undefined
}

/** Everybody who may own work, once there is no current agent. */
function earlierOwners({ owners, current }: LiveAgents): readonly AgentHandle[] {
  return current === undefined || owners.some(({ id }) => id === current.id) ? owners : [...owners, current]
}

function checkAgent(agent: MemoryAgent): void {
  const candidate = agent as Partial<MemoryAgent> | null | undefined
  if (typeof candidate?.commitMemorySession !== 'function') {
    throw new TypeError('An agent must be an object with a commitMemorySession method; see MemoryAgent.')
  }
  if (agent.provider !== undefined && typeof agent.provider !== 'string') {
    throw new TypeError('agent.provider must be a string if it is given.')
  }
}
