import { allSegments, hasUncommittedWork, nextWake, retryDelay } from '../core/index.js'
import type { Background } from './background.js'
import type { Events } from './events.js'
import type { Settings } from './options.js'
import type { Wakes } from './wakes.js'

/** More than this is not begun at once: what waits costs memory, and the oldest goes first. */
const WINDOW = 1024

interface Parts {
  readonly settings: Settings
  readonly background: Background
  readonly events: Events
  readonly wakes: Wakes
}

/** Recovers in the background, and again if the ledger fails meanwhile. */
export function startRecovery(parts: Parts, tries = 1): void {
  const { ledger, logger, clock, retry, random, describeError } = parts.settings
  const { closing } = parts.background
  if (!ledger.supports.persistent) return
  // One turn of the event loop later, so that whoever opened us can listen first.
  setImmediate(() => {
    if (closing.aborted) return
    recoverSessions(parts).catch((error: unknown) => {
      if (closing.aborted) return
      logger.error({ err: describeError(error) }, 'the recovery of earlier work failed; it is tried again')
      clock.setTimer(() => startRecovery(parts, tries + 1), retryDelay(tries, retry, random()))
    })
  })
}

/** Takes up what earlier processes left: work goes to its owners, oldest first; receipts go on being settled (R1). */
async function recoverSessions(parts: Parts): Promise<void> {
  const { settings, background, events, wakes } = parts
  const { ledger } = settings
  let sessions = 0
  for await (const { sessionId, state } of ledger.sessions('unfinished')) {
    if (background.closing.aborted) return
    const segments = allSegments(state)
    const [oldest] = segments
    const newest = segments.at(-1)
    if (oldest === undefined || newest === undefined) continue
    sessions += 1
    events.emit('session:recovered', { sessionId, from: oldest.from, to: newest.to, segments: segments.length })
    const wakeAt = nextWake(state, settings.boundaries)
    if (wakeAt !== undefined) wakes.schedule(sessionId, wakeAt)
    if (!hasUncommittedWork(state)) continue
    await background.untilBelow(WINDOW)
    background.work(sessionId, 'recovery')
  }
  if (sessions > 0) settings.logger.info({ sessions }, 'took up the unfinished work of earlier processes')
}
