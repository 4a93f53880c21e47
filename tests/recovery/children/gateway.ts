import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { MemoryLifecycle } from '../../../src/index.js'
import type { Ledger } from '../../../src/ledger/ledger.js'
import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'
import { seededRandom } from '../../../src/testing/ledger-model.js'
import { bookkeeper, LineFile } from './provider.js'

/** A process that marks and commits until it is killed, by itself at a named moment, or by whoever started it. */
const [directory = '', moment = 'none', seed = '1', worker = 'false'] = process.argv.slice(2)
const random = seededRandom(Number(seed))
const acknowledged = new LineFile(join(directory, 'acknowledged'))
const books = new LineFile(join(directory, 'books'))
let countdown = 1 + Math.floor(random() * 12)

function reach(name: string): void {
  if (name !== moment) return
  countdown -= 1
  if (countdown <= 0) process.kill(process.pid, 'SIGKILL')
}

function isConclusion(events: readonly { readonly type: string }[]): boolean {
  return events.some(({ type }) => type === 'commit:succeeded' || type === 'commit:accepted')
}

/** Dies on the way to the record of a provider's answer, or right after it. */
function watched(ledger: Ledger): Ledger {
  return new Proxy(ledger, {
    get(target, name) {
      if (name !== 'transact') {
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? (value as () => unknown).bind(target) : value
      }
      const transact: Ledger['transact'] = async (sessionId, decide) => {
        const decision = await target.transact(sessionId, (state) => {
          const decided = decide(state)
          if (isConclusion(decided.events)) reach('before-record')
          return decided
        })
        if (isConclusion(decision.events)) reach('after-record')
        return decision
      }
      return transact
    },
  })
}

const moments = { at: (name: string) => reach(name), random }
const agents = new Map(['one', 'two'].map((id) => [id, bookkeeper(id, books, moments)]))
const lifecycle = await MemoryLifecycle.open({
  ledger: watched(sqliteLedger({ path: join(directory, 'ledger.db'), worker: worker === 'true' })),
  revive: ({ agentId = 'one' }) => agents.get(agentId),
  retry: { attempts: 1_000_000, minDelayMs: 2, maxDelayMs: 10 },
  boundaries: { maxTurns: 9 },
})
lifecycle.on('commit:started', () => reach('before-call'))
lifecycle.on('session:recovered', ({ sessionId, from, to }) => books.write('recovered', sessionId, from, to))
process.stdout.write('ready\n')

async function converse(sessionId: string): Promise<never> {
  for (;;) {
    const text = randomUUID()
    const agent = agents.get(random() < 0.8 ? 'one' : 'two')
    const generation = await lifecycle.markTurnCompleted(sessionId, {
      ...(agent === undefined ? {} : { agent }),
      messages: [text],
      turnId: text,
    })
    acknowledged.write(sessionId, generation, text, agent?.agentId ?? '')
    reach('after-mark')
    const luck = random()
    if (luck < 0.08) await lifecycle.commit(sessionId)
    else if (luck < 0.14) lifecycle.switchSession(sessionId, 'elsewhere')
    else if (luck < 0.15) await lifecycle.evict(sessionId)
  }
}

await Promise.all(['s0', 's1', 's2', 's3'].map(converse))
