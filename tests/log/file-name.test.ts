import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assertId, fileOfId, idOfFile, idOfName, nameOfId } from '../../src/log/file-name.js'

const ALPHABET = Array.from('ABCXYZabcxyz0189_.:@-')
const ids = fc
  .string({ unit: fc.constantFrom(...ALPHABET), minLength: 1, maxLength: 128 })
  .filter((id) => id !== '.' && id !== '..')

describe('file names of ids', () => {
  test.each(['', '.', '..', 'a/b', 'a\\b', 'a b', 'ä', 'a\0', 'a\n', 'x'.repeat(129), '%2e%2e', 'a=b'])(
    'S7: the id %j is refused before any path is built',
    (id) => {
      expect(() => assertId(id, 'the session id')).toThrow(TypeError)
      expect(() => assertId(id, 'the session id')).toThrow('the session id')
    },
  )

  test.each([undefined, null, 7, {}])('S7: %j is no id', (id) => {
    expect(() => assertId(id, 'the run id')).toThrow('Expected the run id to be a string')
  })

  test('S7: a plain id keeps its name', () => {
    expect(fileOfId('chat-42')).toBe('chat-42.jsonl')
  })

  test('S7: ids that differ only in case have names that differ in lower case', () => {
    const names = ['alice', 'Alice', 'aLice', 'ALICE'].map((id) => fileOfId(id).toLowerCase())
    expect(new Set(names).size).toBe(4)
  })

  test('S7: no two ids share a name on a file system that ignores case', () => {
    fc.assert(
      fc.property(ids, ids, (left, right) => {
        fc.pre(left !== right)
        expect(nameOfId(left).toLowerCase()).not.toBe(nameOfId(right).toLowerCase())
      }),
    )
  })

  test('S7: a name leads back to its id', () => {
    fc.assert(
      fc.property(ids, (id) => {
        expect(idOfFile(fileOfId(id))).toBe(id)
      }),
    )
  })

  test('S7: a name that no id has leads nowhere', () => {
    for (const name of ['=tmp-abc', 'Alice', 'a=', 'a=0', 'con', 'a b', '', 'x'.repeat(129)]) {
      expect(idOfName(name), name).toBeUndefined()
    }
  })

  test('S7: names are safe everywhere: no device, no dot or space at the end, no reserved character, not too long', () => {
    fc.assert(
      fc.property(fc.oneof(ids, fc.constantFrom('con', 'NUL', 'com1', 'lpt9.txt', 'a.', 'A'.repeat(128))), (id) => {
        const name = nameOfId(id)
        expect(name).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i)
        expect(name).not.toMatch(/[. ]$|[<>:"/\\|?*]/)
        expect(fileOfId(id).length).toBeLessThan(200)
      }),
    )
  })
})
