import type { AgentHandle } from './agents.js'
import { ProviderCall } from './call.js'
import type { Events } from './events.js'
import type { Settings } from './options.js'

/** Closes agents that nothing needs any more. One may fail or hang: that is logged, and hurts nobody. */
export class AgentCloser {
  readonly #settings: Settings
  readonly #events: Events
  readonly #calls = new Set<ProviderCall<unknown>>()
  #isStopped = false

  constructor(settings: Settings, events: Events) {
    this.#settings = settings
    this.#events = events
  }

  close(handle: AgentHandle): void {
    const { clock, commitTimeoutMs, logger, describeError } = this.#settings
    const { id: agentId } = handle
    const call = new ProviderCall(() => handle.agent.close?.(), { clock, timeoutMs: commitTimeoutMs, graceMs: 0 })
    this.#calls.add(call)
    handle.closing = call.result.then((result) => {
      this.#calls.delete(call)
      if (result === 'abandoned') logger.warn({ agentId }, 'an agent did not close in time')
      else if (result.kind === 'threw')
        logger.warn({ agentId, err: describeError(result.error) }, 'an agent failed to close')
      this.#events.emit('agent:closed', { agentId })
    })
    if (this.#isStopped) call.abort('closed')
  }

  /** Waits for none of them any more: a hung one would keep the process alive. */
  stop(): void {
    this.#isStopped = true
    for (const call of this.#calls) call.abort('closed')
  }
}
