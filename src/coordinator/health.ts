import type { Settings } from './options.js'
import type { Health } from './reports.js'

/** What only the running process knows. */
interface Running {
  readonly isClosed: boolean
  readonly inFlight: number
  readonly oldestFlightAt: number | undefined
  readonly keptAnswers: number
  readonly lastSuccessAt: number | undefined
}

/** `unhealthy`: nothing can be recorded. `degraded`: recorded work is not getting through. */
export async function healthOf(settings: Settings, running: Running): Promise<Health> {
  const { ledger, clock } = settings
  const now = clock.now()
  const { status, reason } = ledger.health()
  const stats = await ledger.stats().catch(() => undefined)
  const broken = [
    ...(running.isClosed ? ['closed'] : []),
    ...(status === 'unhealthy' ? [`ledger: ${reason ?? 'unhealthy'}`] : []),
    ...(stats === undefined && status === 'ok' && !running.isClosed ? ['ledger: cannot be read'] : []),
  ]
  const parked = stats?.parked ?? 0
  const unsettled = stats?.unsettled ?? 0
  const struggling = [
    ...(parked > 0 ? [`parked: ${parked} segments wait for retryParked`] : []),
    ...(running.keptAnswers > 0 ? [`answers of ${running.keptAnswers} sessions wait for the ledger`] : []),
    ...(isStuck(running, now, settings) ? ['a provider call has run out of its time limit'] : []),
  ]
  return {
    status: broken.length > 0 ? 'unhealthy' : struggling.length > 0 ? 'degraded' : 'ok',
    dirtySessions: stats?.dirtySessions ?? 0,
    oldestUncommittedAgeMs:
      stats?.uncommittedSince === undefined ? undefined : Math.max(0, now - stats.uncommittedSince),
    inFlight: running.inFlight,
    longestInFlightMs: running.oldestFlightAt === undefined ? undefined : now - running.oldestFlightAt,
    unsettled,
    parked,
    lastSuccessAt: running.lastSuccessAt,
    ledger: status,
    reasons: [...broken, ...struggling],
  }
}

function isStuck(running: Running, now: number, { commitTimeoutMs }: Settings): boolean {
  return running.oldestFlightAt !== undefined && now - running.oldestFlightAt > commitTimeoutMs
}
