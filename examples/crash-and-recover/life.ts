import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { type MemoryAgent, MemoryLifecycle } from 'tidemark'
import { sqliteLedger } from 'tidemark/sqlite'

const [directory = '.', dieAt = 'never'] = process.argv.slice(2)

function dieIf(moment: string): void {
  if (moment !== dieAt) return
  console.log('  … and here the process dies')
  process.kill(process.pid, 'SIGKILL')
}

/** A memory provider that remembers keys: offered twice under one key, a segment is learned once. */
const agent: MemoryAgent = {
  agentId: 'assistant-1',
  async commitMemorySession(commit) {
    console.log(
      `  provider: ${commit.sessionId} ${commit.from}–${commit.to}, attempt ${commit.attempt}, ${commit.reason}`,
    )
    const turns: unknown[] = []
    for await (const turn of commit.turns()) turns.push(turn.messages[0])
    dieIf('inside-the-commit')
    const line = JSON.stringify({ key: commit.idempotencyKey, sessionId: commit.sessionId, turns })
    appendFileSync(join(directory, 'learned.jsonl'), `${line}\n`)
  },
}

const lifecycle = await MemoryLifecycle.open({
  ledger: sqliteLedger({ path: join(directory, 'ledger.db') }),
  // Work of an earlier process is handed to an agent with the recorded identity.
  revive: ({ agentId }) => (agentId === agent.agentId ? agent : undefined),
})
lifecycle.on('session:recovered', ({ sessionId, from, to }) => {
  console.log(`  found unfinished work: ${sessionId} ${from}–${to}`)
})

if (dieAt !== 'never') {
  for (const text of ['hello', 'remember the tide']) {
    const generation = await lifecycle.markTurnCompleted('harbour', { agent, messages: [`${text} (${dieAt})`] })
    console.log(`  turn ${generation} is acknowledged: it cannot be forgotten any more`)
  }
  dieIf('after-acknowledging')
  await lifecycle.flush('harbour')
}

const report = await lifecycle.drain({ deadlineMs: 10_000 })
const { generation, watermark } = (await lifecycle.inspect('harbour')) ?? { generation: 0, watermark: 0 }
console.log(`  drained, ${report.remaining.length} segments remain; generation ${generation}, watermark ${watermark}`)
await lifecycle.close()
