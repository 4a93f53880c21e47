import { recordTurn } from '../../../src/core/index.js'
import { sqliteLedger } from '../../../src/ledger/sqlite/index.js'

/** Marks one turn, reads all texts back, and prints both. With a third argument it dies instead of closing. */
const [path = '', ending = 'close'] = process.argv.slice(2)
const ledger = sqliteLedger({ path })
await ledger.open()
const messages = JSON.stringify([`by Node ${process.versions.node}`])
const turn = { owner: 'a', at: 1, turnId: undefined, messages }
const { result } = await ledger.transact('s', (state) => recordTurn(state, turn))
const texts: unknown[] = []
for await (const entry of ledger.outbox('s', 1, Infinity)) texts.push(entry.messages)
process.stdout.write(`${JSON.stringify({ generation: result, texts, node: process.versions.node })}\n`, () => {
  if (ending === 'die') process.kill(process.pid, 'SIGKILL')
  else void ledger.close()
})
