/**
 * A conversation that is committed to OpenViking, fails to be extracted, is repaired, and is recalled.
 *
 *   npx tsx examples/openviking/main.ts                       against the double, without a network
 *   OPENVIKING_URL=http://127.0.0.1:1933 npx tsx examples/openviking/main.ts
 */
import { MemoryLifecycle } from 'tidemark'
import { OpenVikingProvider } from 'tidemark/openviking'
import { startOpenVikingDouble } from 'tidemark/testing'

const { OPENVIKING_URL: url, OPENVIKING_API_KEY: apiKey } = process.env
const double = url === undefined ? await startOpenVikingDouble() : undefined
// The first extraction fails after it was accepted: most integrations would never know.
double?.controls.failPhase2('the model is overloaded')

const openviking = new OpenVikingProvider({
  endpoint: url ?? double?.url ?? '',
  ...(apiKey !== undefined && { apiKey }),
})
console.log('server:', await openviking.health())

const lifecycle = await MemoryLifecycle.open({
  revive: ({ sessionId }) => openviking.agent(sessionId),
  retry: { attempts: 8, minDelayMs: 200, maxDelayMs: 5_000 },
})
const settled = new Promise<void>((resolve) => {
  lifecycle.on('commit:accepted', ({ from, to }) =>
    console.log(`accepted  turns ${from}–${to}: archived, not learned yet`),
  )
  lifecycle.on('receipt:failed', ({ from, to }) =>
    console.log(`failed    turns ${from}–${to}: they go to a fresh session`),
  )
  lifecycle.on('receipt:settled', ({ from, to }) => {
    console.log(`extracted turns ${from}–${to}`)
    resolve()
  })
})

const chat = `example-${Date.now()}`
const said = [
  ['I drink green tea in the morning.', 'Noted: green tea in the morning.'],
  ['And never coffee after noon.', 'No coffee after noon then.'],
]
for (const [question, answer] of said) {
  const messages = [
    { role: 'user', content: question },
    { role: 'assistant', content: answer },
  ]
  await lifecycle.markTurnCompleted(chat, { agent: openviking.agent(chat), messages })
}
lifecycle.switchSession(chat, `${chat}-next`)
await settled

console.log(await openviking.recall('green tea'))
if (double !== undefined) console.log('learned how often:', double.stats.extracted)
await lifecycle.close()
await openviking.close()
await double?.close()
