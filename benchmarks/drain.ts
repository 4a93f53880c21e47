import { type MemoryAgent, MemoryLifecycle } from 'tidemark'
import { median } from './measure.js'

/** Prints how near a drain comes to the bare timers of its providers, in per cent. */
const [sessions, providerMs, concurrency] = [10_000, 20, 256]
const slow: MemoryAgent = {
  agentId: 'slow',
  provider: 'slow',
  commitMemorySession: () => new Promise<void>((resolve) => setTimeout(resolve, providerMs)),
}
const runs: number[] = []
for (let round = 0; round < 7; round += 1) {
  globalThis.gc?.()
  const lifecycle = await MemoryLifecycle.open()
  for (let index = 0; index < sessions; index += 1) await lifecycle.markTurnCompleted(`s-${index}`, { agent: slow })
  // What the same timers cost without tidemark: setTimeout is never exact.
  const ideal = await idealMs(sessions, providerMs, concurrency)
  const start = performance.now()
  const report = await lifecycle.drain({ deadlineMs: 60_000, concurrency })
  const elapsed = performance.now() - start
  if (report.committed !== sessions) throw new Error(`drain committed ${report.committed} of ${sessions}`)
  // The first two rounds warm the code up.
  if (round >= 2) runs.push((ideal / elapsed) * 100)
  await lifecycle.close()
}
console.log(median(runs))

async function idealMs(sessions: number, providerMs: number, concurrency: number): Promise<number> {
  const start = performance.now()
  let left = sessions
  const worker = async (): Promise<void> => {
    while (left-- > 0) await new Promise((resolve) => setTimeout(resolve, providerMs))
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return performance.now() - start
}
