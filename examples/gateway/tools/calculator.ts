import type { Tool } from './tool.js'

export const calculator: Tool = {
  schema: {
    type: 'function',
    function: {
      name: 'calculator',
      description: 'Works out an arithmetic expression with + - * / % ^ and brackets.',
      parameters: {
        type: 'object',
        properties: { expression: { type: 'string', description: 'For example (3 + 4) * 12.5' } },
        required: ['expression'],
        additionalProperties: false,
      },
    },
  },
  run(args) {
    const expression = (args as { expression?: unknown } | null)?.expression
    if (typeof expression !== 'string') throw new Error('expression must be a string')
    return String(calculate(expression))
  },
}

const LONGEST_EXPRESSION = 500

/** A small precedence parser: what a model or a user wrote is never run as code. */
export function calculate(expression: string): number {
  if (expression.length > LONGEST_EXPRESSION) throw new Error('the expression is too long')
  const tokens = tokenize(expression)
  let at = 0
  const next = (): string | number | undefined => tokens[at]

  const value = (): number => {
    const token = tokens[at++]
    if (typeof token === 'number') return token
    if (token === '-') return -power()
    if (token === '+') return power()
    if (token !== '(') throw new Error(`expected a number, found ${token ?? 'the end'}`)
    const inner = sum()
    if (tokens[at++] !== ')') throw new Error('a closing bracket is missing')
    return inner
  }
  // Right to left, and tighter than a sign before it: -2^2 is -4.
  const power = (): number => {
    const base = value()
    if (next() !== '^') return base
    at += 1
    return base ** power()
  }
  const product = (): number => {
    let left = power()
    for (let sign = next(); sign === '*' || sign === '/' || sign === '%'; sign = next()) {
      at += 1
      const right = power()
      left = sign === '*' ? left * right : sign === '/' ? left / right : left % right
    }
    return left
  }
  const sum = (): number => {
    let left = product()
    for (let sign = next(); sign === '+' || sign === '-'; sign = next()) {
      at += 1
      left = sign === '+' ? left + product() : left - product()
    }
    return left
  }

  const result = sum()
  if (at < tokens.length) throw new Error(`did not expect ${String(next())}`)
  if (!Number.isFinite(result)) throw new Error('the result is not a finite number')
  // 0.1 + 0.2 reads as 0.3.
  return Number(result.toPrecision(12))
}

function tokenize(expression: string): (string | number)[] {
  const tokens: (string | number)[] = []
  for (const [, number, sign, other] of expression.matchAll(/(\d+(?:\.\d+)?|\.\d+)|([-+*/%^()])|(\S)/g)) {
    if (other !== undefined) throw new Error(`did not expect '${other}'`)
    tokens.push(number === undefined ? (sign ?? '') : Number(number))
  }
  return tokens
}
