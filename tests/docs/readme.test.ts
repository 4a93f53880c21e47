import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

test('the first example of the README is the file that runs', () => {
  const snippet = /<!-- examples\/quick-start\/main\.ts -->\n\n```ts\n([\s\S]*?)\n```/.exec(read('README.md'))?.[1]
  expect(snippet).toBe(read('examples/quick-start/main.ts').trimEnd())
})

test('every error code is documented, and no other', () => {
  const union = /export type TidemarkErrorCode =([\s\S]*?)\n\n/.exec(read('src/base/errors.ts'))?.[1] ?? ''
  const codes = [...union.matchAll(/'([A-Z_]+)'/g)].map(([, code]) => code)
  const documented = [...read('docs/errors.md').matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code]) => code)
  expect(codes.length).toBeGreaterThan(10)
  expect(documented).toEqual(codes)
})

test('every error code is used somewhere', () => {
  const union = /export type TidemarkErrorCode =([\s\S]*?)\n\n/.exec(read('src/base/errors.ts'))?.[1] ?? ''
  const sources = readdirSync(new URL('../../src', import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('errors.ts'))
    .map((path) => read(`src/${path}`))
    .join('\n')
  const unused = [...union.matchAll(/'([A-Z_]+)'/g)]
    .map(([, code]) => code ?? '')
    .filter((code) => !sources.includes(`'${code}'`))
  expect(unused).toEqual([])
})

test('every rule of docs/guarantees.md is shown by a test that carries its number', () => {
  const rules = [...read('docs/guarantees.md').matchAll(/^- \*\*([A-Z]\d+)/gm)].map(([, rule]) => rule ?? '')
  const tests = readdirSync(new URL('..', import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => read(`tests/${path}`))
    .join('\n')
  expect(rules.length).toBeGreaterThan(50)
  const unshown = rules.filter((rule) => !new RegExp(`['"\`](?:[A-Z]\\d+, )*${rule}(?:, [A-Z]\\d+)*:`).test(tests))
  expect(unshown).toEqual([])
})
