import type { AgentHandle } from './agents.js'
import { ProviderCall } from './call.js'
import type { Events } from './events.js'
import type { Settings } from './options.js'

/** Closes an agent that nothing needs any more. It may fail or hang: that is logged, and hurts nobody. */
export function closeAgent(handle: AgentHandle, settings: Settings, events: Events): void {
  const { clock, commitTimeoutMs, logger, describeError } = settings
  const { id: agentId } = handle
  const call = new ProviderCall(() => handle.agent.close?.(), { clock, timeoutMs: commitTimeoutMs, graceMs: 0 })
  handle.closing = call.result.then((result) => {
    if (result === 'abandoned') logger.warn({ agentId }, 'an agent did not close in time')
    else if (result.kind === 'threw')
      logger.warn({ agentId, err: describeError(result.error) }, 'an agent failed to close')
    events.emit('agent:closed', { agentId })
  })
}
