import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeLine, encodeLine, serialiseFields } from '../../src/log/line.js'

const encode = (seq: number, fields: object) => Buffer.from(encodeLine(seq, serialiseFields(fields))).subarray(0, -1)

describe('a line of a log', () => {
  test('is plain JSON that carries its sequence number and a checksum', () => {
    const line = encode(7, { text: 'hello' })
    expect(JSON.parse(line.toString())).toEqual({
      sum: expect.stringMatching(/^[0-9a-f]{8}$/) as string,
      seq: 7,
      text: 'hello',
    })
  })

  test('comes back as it was written, whatever the text', () => {
    fc.assert(
      fc.property(fc.nat(), fc.string({ unit: 'binary' }), fc.jsonValue(), (seq, text, value) => {
        const record = decodeLine(encode(seq, { text, value }))
        expect(record).toMatchObject({ seq, text, value: JSON.parse(JSON.stringify(value)) as unknown })
      }),
    )
  })

  test('never contains a raw line feed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(encode(1, { text }).includes(0x0a)).toBe(false)
      }),
    )
  })

  test('is refused after any single byte changed to any other', () => {
    const line = encode(3, { text: 'größe' })
    for (let at = 0; at < line.length; at++) {
      for (let value = 0; value < 256; value++) {
        if (line[at] === value) continue
        const flipped = Buffer.from(line)
        flipped[at] = value
        expect(decodeLine(flipped), `byte ${at} = ${value}`).toBeUndefined()
      }
    }
  })

  test('is refused when it is cut short anywhere', () => {
    const line = encode(3, { text: 'abc' })
    for (let length = 0; length < line.length; length++) expect(decodeLine(line.subarray(0, length))).toBeUndefined()
  })

  test('needs at least one field', () => {
    expect(() => serialiseFields({})).toThrow(TypeError)
  })
})
