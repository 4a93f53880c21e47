import { TidemarkError } from '../base/errors.js'
import { rotate } from '../core/index.js'
import type { Agents } from './agents.js'
import type { Recorder } from './recorder.js'

/** The conversation goes on under another id: one durable transition of the old one, then the live agent follows (B7). */
export async function rotateSession(
  { agents, recorder }: { readonly agents: Agents; readonly recorder: Recorder },
  oldId: string,
  newId: string,
): Promise<void> {
  const moving = agents.current(oldId)
  const resident = agents.current(newId)
  if (moving !== undefined && resident !== undefined && moving !== resident) {
    throw refusal(`'${newId}' has another live agent. Unregister or evict it first, or rotate to a fresh id.`, {
      oldId,
      newId,
    })
  }
  const { result } = await recorder.transact(oldId, (state) => rotate(state, newId))
  const { conflict } = result
  if (conflict !== undefined) {
    throw refusal(`'${oldId}' was rotated to '${conflict}' before; it cannot also go on as '${newId}'.`, {
      oldId,
      newId,
      rotatedTo: conflict,
    })
  }
  agents.move(oldId, newId)
}

function refusal(message: string, details: Readonly<Record<string, string>>): TidemarkError {
  return new TidemarkError('ROTATION_REFUSED', message, { details })
}
