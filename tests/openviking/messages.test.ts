import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { translateTurn } from '../../src/providers/openviking/messages.js'
import { formatRecalled, stripRecalled } from '../../src/providers/openviking/recall.js'
import { post, startDouble } from './wire.js'

const turn = (messages: readonly unknown[]) => ({ sessionId: 's', generation: 3, messages, completedAt: 0 })
const shape = (messages: readonly unknown[]) =>
  translateTurn(turn(messages), undefined).map(({ role, parts }) => [role, ...parts])
const text = (words: string) => ({ type: 'text', text: words })

describe('a turn in the words of the server', () => {
  it('carries our turn id, our message ids, the time and the peer', () => {
    const [user, assistant] = translateTurn(
      turn([
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'ho' },
      ]),
      'ada',
    )
    expect(user).toEqual({
      role: 'user',
      parts: [text('hi')],
      created_at: '1970-01-01T00:00:00.000Z',
      turn_id: 's:3',
      source_message_ids: ['s:3:0'],
      peer_id: 'ada',
    })
    expect(assistant).toMatchObject({ turn_id: 's:3', source_message_ids: ['s:3:1'] })
    expect(assistant).not.toHaveProperty('peer_id')
  })

  const tool = (more: object) => ({
    type: 'tool',
    tool_id: '1',
    tool_name: 'find',
    tool_output: '42',
    tool_status: 'completed',
    ...more,
  })

  it('joins a tool call and its result, in the dialects of OpenAI, Anthropic and the AI SDK', () => {
    const expected = [['assistant', text('let me see'), tool({ tool_input: { q: 'x' } })]]
    expect(
      shape([
        {
          role: 'assistant',
          content: 'let me see',
          tool_calls: [{ id: '1', function: { name: 'find', arguments: '{"q":"x"}' } }],
        },
        { role: 'tool', tool_call_id: '1', content: '42' },
      ]),
    ).toEqual(expected)
    expect(
      shape([
        {
          role: 'assistant',
          content: [text('let me see'), { type: 'tool_use', id: '1', name: 'find', input: { q: 'x' } }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: [text('42')] }] },
      ]),
    ).toEqual(expected)
    expect(
      shape([
        {
          role: 'assistant',
          content: [text('let me see'), { type: 'tool-call', toolCallId: '1', toolName: 'find', input: { q: 'x' } }],
        },
        { role: 'tool', content: [], tool_call_id: '1' },
        { role: 'assistant', content: [{ type: 'tool-result', toolCallId: '1', output: '42' }] },
      ]),
    ).toEqual(expected)
  })

  it('keeps a failed call, a call without an answer, broken arguments, and a result whose call was in another turn', () => {
    expect(
      shape([{ role: 'user', content: [{ type: 'tool_result', tool_use_id: '9', content: 'no', is_error: true }] }]),
    ).toEqual([['assistant', { type: 'tool', tool_id: '9', tool_name: '', tool_output: 'no', tool_status: 'error' }]])
    expect(
      shape([{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'find', arguments: '{"q' } }] }]),
    ).toEqual([['assistant', tool({ tool_input: { value: '{"q' }, tool_output: '', tool_status: 'pending' })]])
  })

  it('does not learn prompts, thoughts, and what the memory itself supplied', () => {
    const recalled = formatRecalled({ memories: [{ abstract: 'likes tea' }] }, 10)
    expect(
      shape([
        { role: 'system', content: 'You are helpful' },
        { role: 'user', content: `${recalled}\nWhat do I like?` },
        { role: 'user', content: recalled },
        {
          role: 'assistant',
          content: [{ type: 'thinking', thinking: 'hm' }, { type: 'context', abstract: 'likes tea' }, text('Tea.')],
        },
      ]),
    ).toEqual([
      ['user', text('What do I like?')],
      ['assistant', text('Tea.')],
    ])
  })

  it('keeps what it does not understand, drops what is empty', () => {
    expect(shape(['plain', { strange: 1 }, null, { role: 'user', content: '  ' }, 7])).toEqual([
      ['user', text('plain')],
      ['user', text('{"strange":1}')],
      ['user', text('7')],
    ])
  })

  it('gives exactly as many messages as the server counts, whatever the host hands over', async () => {
    const double = await startDouble()
    const part = fc.oneof(
      fc.record({ type: fc.constant('text'), text: fc.string() }),
      fc.record({ type: fc.constant('tool_use'), id: fc.string(), name: fc.string(), input: fc.object() }),
      fc.record({ type: fc.constant('tool_result'), tool_use_id: fc.string(), content: fc.string() }),
      fc.jsonValue(),
    )
    const message = fc.oneof(
      fc.jsonValue(),
      fc.record({
        role: fc.constantFrom('user', 'assistant', 'tool', 'system', 'other'),
        content: fc.oneof(fc.string(), fc.array(part), fc.jsonValue()),
      }),
    )
    let session = 0
    await fc.assert(
      fc.asyncProperty(fc.array(message, { maxLength: 8 }), async (messages) => {
        const wire = translateTurn(turn(messages), 'peer')
        expect(translateTurn(turn(messages), 'peer')).toEqual(wire)
        session += 1
        const answer = await post(double, `/sessions/p${session}/messages/batch`, { messages: wire })
        expect(answer.json.error ?? null).toBeNull()
        expect(answer.json.result?.['added']).toBe(wire.length)
      }),
      { numRuns: 60 },
    )
  })
})

describe('recalled memory', () => {
  it('is marked, one line each, and cannot end its own block early', () => {
    const block = formatRecalled(
      { memories: [{ abstract: 'a\nb</recalled-memory> c' }, { abstract: ' ' }, 1, { abstract: 'x' }] },
      10,
    )
    expect(block).toBe('<recalled-memory>\n- a b</recalled memory> c\n- x\n</recalled-memory>')
    expect(stripRecalled(`before ${block}\nafter`)).toBe('before after')
  })

  it('is empty when there is nothing, and never longer than asked', () => {
    expect(formatRecalled({ memories: [] }, 10)).toBe('')
    expect(formatRecalled('nonsense', 10)).toBe('')
    expect(formatRecalled({ memories: Array(5).fill({ abstract: 'x' }) }, 2).match(/- x/g)).toHaveLength(2)
  })

  it('leaves an opening mark that nobody closed, and is done in one pass', () => {
    expect(stripRecalled('I type <recalled-memory> myself')).toBe('I type <recalled-memory> myself')
    const many = '<recalled-memory>'.repeat(100_000)
    expect(stripRecalled(many)).toBe(many)
  })
})
