import { expect, test } from 'vitest'
import { readConfig } from '../../examples/gateway/config.js'

test('without any setting everything is built in and stays on this machine', () => {
  expect(readConfig({})).toMatchObject({ port: 4747, openai: undefined, openviking: undefined, logLevel: 'warn' })
})

test('an endpoint is taken as it is, without slashes at its end', () => {
  const { openai, openviking } = readConfig({
    OPENAI_BASE_URL: 'http://127.0.0.1:11434/v1//',
    OPENAI_MODEL: 'tiny',
    OPENVIKING_URL: 'http://127.0.0.1:1933',
  })
  expect(openai).toEqual({ baseUrl: 'http://127.0.0.1:11434/v1', apiKey: undefined, model: 'tiny' })
  expect(openviking).toEqual({ endpoint: 'http://127.0.0.1:1933', apiKey: undefined })
})

test.each([
  ['PORT', 'eighty'],
  ['PORT', '70000'],
  ['PORT', '-1'],
  ['SHUTDOWN_DEADLINE_MS', '1.5'],
  ['OPENAI_BASE_URL', 'localhost:11434'],
  ['OPENVIKING_URL', 'ftp://x'],
  ['LOG_LEVEL', 'loud'],
])('%s=%s is refused by name', (name, value) => {
  expect(() => readConfig({ [name]: value })).toThrow(new RegExp(`^${name} must be`))
})
