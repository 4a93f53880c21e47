import { join } from 'node:path'
import { pino } from 'pino'
import { ConfigError, readConfig } from './config.js'
import { openHolographicMemory } from './memory/holographic.js'
import { openVikingMemory } from './memory/openviking.js'
import { offlineModel } from './model/offline.js'
import { openAiModel } from './model/openai.js'
import { start, StartError } from './start.js'

try {
  const config = readConfig(process.env)
  const { openai, openviking } = config
  const { url, gateway } = await start({
    ...config,
    model: openai === undefined ? offlineModel() : openAiModel(openai),
    openMemory: (directory) =>
      openviking === undefined ? openHolographicMemory(join(directory, 'memory.sqlite')) : openVikingMemory(openviking),
    logger: pino({ level: config.logLevel }, pino.destination(2)),
  })
  process.stdout.write(`
  tidemark gateway   ${url}

  model   ${gateway.model.name}
  memory  ${gateway.memory.name}
  state   ${config.directory}

  Three things to try:
  1. Say “I live in Lisbon”, press New chat, and ask “Where do I live?”
  2. Ask “Tell me a story slowly”, kill this process in the middle (kill -9 ${process.pid}),
     start it again: what you saw is still there, and you can go on.
  3. Press Ctrl+C: running answers are ended, memory is handed over, then it exits.
`)
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof StartError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
