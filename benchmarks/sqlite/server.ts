import { createServer } from 'node:http'
import { join } from 'node:path'
import { MemoryLifecycle } from '../../src/index.js'
import { type Changes, countAppended } from '../../src/ledger/sqlite/changes.js'
import { LocalHost, type StoreCalls } from '../../src/ledger/sqlite/host.js'
import { SqliteLedger } from '../../src/ledger/sqlite/ledger.js'

/** A chat server over HTTP in a process of its own: every request is a finished turn, marked durably or not at all. */
const [directory = '', kind = 'none'] = process.argv.slice(2)
const agent = { agentId: 'bench', commitMemorySession: () => undefined }
let batches = 0
let marks = 0
class CountingHost extends LocalHost {
  override call<Name extends keyof StoreCalls>(
    name: Name,
    ...args: Parameters<StoreCalls[Name]>
  ): ReturnType<StoreCalls[Name]> {
    if (name === 'apply') {
      batches += 1
      marks += countAppended(args[0] as Changes)
    }
    return super.call(name, ...args)
  }
}
const path = join(directory, `${kind}.db`)
const lifecycle =
  kind === 'none'
    ? undefined
    : await MemoryLifecycle.open({
        ledger: new SqliteLedger({ path }, (at) => new CountingHost({ path, allowNetworkFileSystem: false, at })),
      })

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    const { sessionId, messages } = JSON.parse(body) as { sessionId: string; messages: unknown[] }
    const reply = (generation: number): void => {
      const answer = JSON.stringify({ sessionId, generation })
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer)
    }
    if (lifecycle === undefined) reply(messages.length)
    else void lifecycle.markTurnCompleted(sessionId, { agent, messages }).then(reply)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined })
})
process.on('message', () => {
  process.send?.({ batches, marks })
  server.closeAllConnections()
  server.close()
  void lifecycle?.close().then(() => process.disconnect())
  if (lifecycle === undefined) process.disconnect()
})
