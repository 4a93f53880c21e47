import { type MemoryAgent, MemoryLifecycle } from '../../src/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { AgentPool } from '../../src/pool/index.js'
import { gracefulShutdown, type ShutdownSignal } from '../../src/shutdown/index.js'

/** What the parent asks of this process, in its first argument. */
export interface FixtureConfig {
  /** Sessions with a completed turn that is not committed. */
  readonly dirty: number
  /** What the provider does: answers after so many milliseconds, or never. */
  readonly provider: number | 'hang'
  readonly deadlineMs: number
  /** Where turns are recorded; in memory if it is not given. */
  readonly ledgerPath?: string
  readonly signals?: readonly ShutdownSignal[]
  /** Whether, and when, it throws. */
  readonly throws?: 'at once' | 'rejecting' | 'while draining'
  readonly onErrorThrows?: boolean
}

const config = JSON.parse(process.argv[2] ?? '{}') as FixtureConfig
const say = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}
const log = (fields: object, message: string): void => say({ log: message, ...fields })
const keepAlive = setInterval(() => undefined, 60_000)

const openAgent = (sessionId: string): MemoryAgent => ({
  agentId: sessionId,
  commitMemorySession: () =>
    new Promise<void>((resolve) => {
      if (config.provider !== 'hang') setTimeout(resolve, config.provider)
    }),
})
const lifecycle = await MemoryLifecycle.open({
  abandonGraceMs: 50,
  ...(config.ledgerPath === undefined ? {} : { ledger: sqliteLedger({ path: config.ledgerPath }) }),
  revive: ({ sessionId }) => openAgent(sessionId),
})
const pool = new AgentPool({
  lifecycle,
  // Room for all: what is dirty waits for the shutdown.
  max: Math.max(1, config.dirty),
  create: openAgent,
})
lifecycle.on('commit:succeeded', ({ sessionId, from, to }) => say({ committed: `${sessionId}:${from}-${to}` }))
lifecycle.on('drain:started', () => {
  say({ event: 'drain:started' })
  if (config.throws !== 'while draining') return
  setImmediate(() => {
    throw new Error('the secret of an exception')
  })
  void Promise.reject(new Error('the secret of a rejection'))
})
lifecycle.on('drain:finished', () => say({ event: 'drain:finished' }))
gracefulShutdown({
  lifecycle,
  pool,
  deadlineMs: config.deadlineMs,
  ...(config.signals === undefined ? {} : { signals: config.signals }),
  logger: { debug: () => undefined, info: log, warn: log, error: log },
  onReport: () => say({ event: 'reported' }),
  onError: () => {
    if (config.onErrorThrows === true) throw new Error('the secret of a handler')
  },
})
await Promise.all(
  Array.from({ length: config.dirty }, (_, index) =>
    pool.use(`session-${index}`, async (agent) => {
      await lifecycle.markTurnCompleted(`session-${index}`, { agent, messages: ['the secret of a user'] })
    }),
  ),
)
say({ event: 'ready' })
if (config.throws === 'at once') {
  setImmediate(() => {
    throw new Error('the secret of an exception')
  })
}
if (config.throws === 'rejecting') void Promise.reject(new Error('the secret of a rejection'))
process.on('exit', () => clearInterval(keepAlive))
