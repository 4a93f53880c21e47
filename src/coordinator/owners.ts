import { TidemarkError } from '../base/errors.js'
import { type AgentHandle, type Agents } from './agents.js'
import type { ProviderCall } from './call.js'
import type { Settings } from './options.js'

/** Finds the live object behind an owner's identity, or rebuilds it. */
export class Owners {
  readonly #settings: Settings
  readonly #agents: Agents

  constructor(settings: Settings, agents: Agents) {
    this.#settings = settings
    this.#agents = agents
  }

  /**
   * Can this owner be called, live or revived? What nobody owns goes to the current agent. `gone` are those that `revive`
   * had nothing for.
   */
  isReachable(sessionId: string, owner: string | undefined, gone: ReadonlySet<string | undefined>): boolean {
    const live = owner === undefined ? this.#agents.ownerOfNext(sessionId) : this.#agents.find(sessionId, owner)
    if (live !== undefined) return true
    return this.#settings.revive !== undefined && !gone.has(owner)
  }

  /**
   * Rebuilds an owner under its recorded identity. What we revive we close, as soon as nothing needs it. An answer that
   * comes after the call was abandoned is closed at once.
   */
  async revive(
    sessionId: string,
    owner: string | undefined,
    call: ProviderCall<unknown>,
  ): Promise<AgentHandle | undefined> {
    const { revive } = this.#settings
    if (revive === undefined) return undefined
    const agent = await revive(owner === undefined ? { sessionId } : { sessionId, agentId: owner }, {
      signal: call.signal,
    })
    if (agent === undefined) return undefined
    const handle = this.#agents.handleOf(agent)
    const isKnown = handle.uses > 0
    if (handle.isNamed && owner !== undefined && handle.id !== owner) {
      if (!isKnown) this.#agents.doom(handle)
      throw new TidemarkError(
        'REVIVED_STRANGER',
        `revive was asked for the agent '${owner}' and gave '${handle.id}'. A segment is committed by its owner only: ` +
          'return an agent with the recorded agentId, or nothing.',
        { details: { sessionId, expected: owner, found: handle.id } },
      )
    }
    if (call.isAbandoned) {
      if (!isKnown) this.#agents.doom(handle)
      return undefined
    }
    this.#agents.keep(sessionId, handle)
    // An agent that somebody registered is theirs to close.
    if (!isKnown) this.#agents.doom(handle)
    return handle
  }
}
