import { onTestFinished } from 'vitest'
import { OpenVikingProvider, type OpenVikingOptions } from '../../src/providers/openviking/index.js'
import type { AtEnd, Double } from './wire.js'

/** Short limits, and one look a settlement: the driver asks again by itself. */
export function makeProvider(
  double: Double,
  options: Partial<OpenVikingOptions> = {},
  atEnd: AtEnd = onTestFinished,
): OpenVikingProvider {
  const provider = new OpenVikingProvider({
    endpoint: double.url,
    readTimeoutMs: 2_000,
    writeTimeoutMs: 2_000,
    settlePollMs: 0,
    ...options,
  })
  atEnd(() => provider.close())
  return provider
}

export { play } from './play.js'
export { makeCommit, makeTurns, once } from './turns.js'
