import { describe, expect, test } from 'vitest'
import { type ChatMessage, RECALLED } from '../../examples/gateway/model/model.js'
import { planAnswer } from '../../examples/gateway/model/offline-answers.js'
import { offlineModel } from '../../examples/gateway/model/offline.js'
import { calculate, calculator } from '../../examples/gateway/tools/calculator.js'

const user = (content: string): ChatMessage => ({ role: 'user', content })
const recalled = (...facts: string[]): ChatMessage => ({
  role: 'system',
  content: [RECALLED, ...facts.map((fact) => `- ${fact}`)].join('\n'),
})

describe('the offline model', () => {
  test.each<[string, ChatMessage[], RegExp]>([
    [
      'answers from memory',
      [recalled('I live in Lisbon', 'My dog is called Rex'), user('Where do I live?')],
      /“I live in Lisbon” \(from memory\)/,
    ],
    [
      'answers from the conversation',
      [user('My cat is called Mia.'), user('What is my cat called?')],
      /“My cat is called Mia\.” \(earlier in this chat\)/,
    ],
    [
      'prefers memory to the chat in a draw',
      [recalled('I live in Lisbon'), user('I live in Lisbon too'), user('Where do I live?')],
      /from memory/,
    ],
    ['says what it does not know', [user('What is the capital of Peru?')], /do not know/],
    ['repeats a statement from its own side', [user("I'm Ann and my dog is Rex")], /you are Ann and your dog is Rex\./],
    [
      'tells what it knows',
      [recalled('I live in Lisbon'), user('What do you know about me?')],
      /I remember:\n• I live in Lisbon/,
    ],
    ['sums the chat up', [user('one'), user('two'), user('Please summarise')], /• one\n• two/],
    ['counts', [user('count to 4')], /^1 2 3 4$/],
    ['counts no further than it should', [user('count to 999999')], / 500$/],
    ['greets somebody it knows', [recalled('I live in Lisbon'), user('Hello')], /Hello again! I remember:/],
    ['helps', [user('help')], /Try:/],
    ['has something to say to anything', [user('lorem ipsum')], /You said: lorem ipsum/],
  ])('%s', (_name, messages, expected) => {
    expect(planAnswer(messages)).toMatchObject({ type: 'text', text: expect.stringMatching(expected) as string })
  })

  test.each([
    ['What is 17 * 23?', { name: 'calculator', args: { expression: '17 * 23' } }],
    ['compute (3+4)×12 please', { name: 'calculator', args: { expression: '(3+4)*12' } }],
    ['What time is it?', { name: 'clock', args: {} }],
    ['which day is it', { name: 'clock', args: {} }],
  ])('calls a tool for “%s”', (question, call) => {
    expect(planAnswer([user(question)])).toEqual({ type: 'tool', ...call })
  })

  test.each(['I was born on 1990-05-06', 'My number is 555', 'I have 2 dogs and 3 cats'])(
    'sees no arithmetic in “%s”',
    (text) => {
      expect(planAnswer([user(text)])).toMatchObject({ type: 'text' })
    },
  )

  test('goes on with the result of its tool, and with what else was asked', () => {
    const messages: ChatMessage[] = [
      user('Compute 6 * 7 and count to 3'),
      { role: 'assistant', content: '', toolCalls: [{ id: 'a', name: 'calculator', arguments: '{}' }] },
      { role: 'tool', toolCallId: 'a', content: '42' },
    ]
    expect(planAnswer(messages)).toEqual({ type: 'text', text: '6 * 7 = 42. 1 2 3' })
  })

  test('stops at once when it is aborted', async () => {
    const abort = new AbortController()
    const said: string[] = []
    const model = offlineModel({ slowWordMs: 60_000 })
    const input = { messages: [user('a story slowly')], tools: [], signal: abort.signal }
    const reading = (async () => {
      for await (const event of model.answer(input)) said.push(event.type)
    })()
    abort.abort()
    await expect(reading).rejects.toThrow()
    expect(said).toEqual([])
  })
})

describe('the calculator', () => {
  test.each([
    ['1 + 2 * 3', 7],
    ['(1 + 2) * 3', 9],
    ['2 ^ 3 ^ 2', 512],
    ['-2 ^ 2', -4],
    ['2 ^ -1', 0.5],
    ['10 % 4 - -1', 3],
    ['0.1 + 0.2', 0.3],
    ['.5 * 4', 2],
  ])('%s is %d', (expression, result) => {
    expect(calculate(expression)).toBe(result)
  })

  test.each(['', '1 +', '(1', '1)', '1 2', 'process.exit()', '1 / 0', '9 ^ 999', '('.repeat(600)])(
    'refuses %j in words',
    (expression) => {
      expect(() => calculate(expression)).toThrow(/[a-z]/)
    },
  )

  test('refuses arguments that are none', () => {
    for (const args of [undefined, null, 'x', {}, { expression: 5 }])
      expect(() => calculator.run(args)).toThrow('string')
  })
})
