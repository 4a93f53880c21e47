import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bind,
  bundle,
  similarity,
  tokenize,
  TWO_PI,
  unbind,
  VectorSpace,
} from '../../src/providers/holographic/vectors.js'

const space = new VectorSpace(1024)
const decimals = (values: Iterable<number>, digits = 9): string[] =>
  Array.from(values, (value) => value.toFixed(digits))

describe('golden values at 1,024 dimensions', () => {
  it('§6: atom("hello") has the angles of the reference', () => {
    const atom = space.atom('hello')
    expect(Array.from(atom.slice(0, 4), (angle) => Math.round((angle * 65_536) / TWO_PI))).toEqual([
      62025, 55221, 50873, 29649,
    ])
    expect(decimals(atom.slice(0, 4))).toEqual(['5.946572398', '5.294247068', '4.877387789', '2.842562274'])
    expect(decimals([atom[1023]!])).toEqual(['3.613771115'])
  })

  it('§6: unrelated atoms have the similarity of the reference', () => {
    expect(decimals([similarity(space.atom('hello'), space.atom('world'))])).toEqual(['-0.006214382'])
  })

  it('§6: a text has the angles of the reference', () => {
    const text = space.text('the quick brown fox')
    expect(decimals(text.slice(0, 3))).toEqual(['5.312128374', '3.236239486', '1.828309088'])
    expect(decimals([similarity(text, space.atom('quick'))], 6)).toEqual(['0.444608'])
  })

  it('§6: a fact has the angles of the reference', () => {
    const fact = space.fact('Alice Smith uses Postgres', ['Alice Smith'])
    expect(decimals(fact.slice(0, 3))).toEqual(['5.611077148', '0.928180402', '0.713106766'])
    expect(decimals([similarity(fact, space.entityKey('Alice Smith'))], 6)).toEqual(['0.644077'])
  })

  it('§6: an atom of fewer dimensions is the beginning of a longer one', () => {
    expect([...new VectorSpace(5).atom('hello')]).toEqual([...space.atom('hello').slice(0, 5)])
  })

  it('an atom that was forgotten and hashed again is the same', () => {
    const small = new VectorSpace(8)
    const before = [...small.atom('first')]
    for (let i = 0; i < 5_000; i++) small.atom(`other ${i}`)
    expect([...small.atom('first')]).toEqual(before)
  })
})

describe('the tokens of a text', () => {
  it('§6: are lower case, split at white space, without punctuation at their edges', () => {
    expect(tokenize(' "Hello," (World)!  it\'s [ok] ... ')).toEqual(['hello', 'world', "it's", 'ok'])
  })

  it('§6: split where the reference splits: U+001C to U+001F and U+0085 are white space, U+FEFF is not', () => {
    expect(tokenize('a\u001cb\u001fc\u0085d\u3000e')).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(tokenize('a\ufeffb')).toEqual(['a\ufeffb'])
  })

  it('§6: a text without tokens is the empty atom, and a repeated token counts twice', () => {
    expect([...space.text(' ... ')]).toEqual(
      [...space.atom('__hrr_empty__')].map((angle) => expect.closeTo(angle, 9) as number),
    )
    const twice = similarity(space.text('tea tea milk'), space.atom('tea'))
    expect(twice).toBeGreaterThan(similarity(space.text('tea milk'), space.atom('tea')) + 0.1)
  })
})

const word = fc.string({ minLength: 1, maxLength: 12 })
const vector = word.map((text) => space.atom(text))

describe('properties', () => {
  it('§6: unbinding undoes binding', () => {
    fc.assert(
      fc.property(vector, vector, (a, b) => {
        expect(similarity(unbind(bind(a, b), b), a)).toBeCloseTo(1, 12)
      }),
    )
  })

  it('§6: every angle lies in [0, 2π), whatever is bound, unbound or bundled', () => {
    fc.assert(
      fc.property(fc.array(vector, { minLength: 1, maxLength: 5 }), vector, (vectors, key) => {
        const all = [...vectors.map((v) => bind(v, key)), ...vectors.map((v) => unbind(v, key)), bundle(vectors)]
        expect(all.every((v) => v.every((angle) => angle >= 0 && angle < TWO_PI))).toBe(true)
      }),
    )
  })

  it('§6: an angle a hair below zero is 0 and not 2π', () => {
    expect([...unbind(Float64Array.of(0), Float64Array.of(1e-17))]).toEqual([0])
  })

  it('§6: similarity is 1 with itself, the same both ways, within -1 and 1, and near 0 for different words', () => {
    fc.assert(
      fc.property(word, word, (a, b) => {
        const [x, y] = [space.atom(a), space.atom(b)]
        expect(similarity(x, x)).toBeCloseTo(1, 12)
        expect(similarity(x, y)).toBeCloseTo(similarity(y, x), 12)
        expect(Math.abs(similarity(x, y))).toBeLessThanOrEqual(1)
        // Seven standard deviations of 1/√(2·1024).
        if (a !== b) expect(Math.abs(similarity(x, y))).toBeLessThan(7 * 0.0221)
      }),
    )
  })

  it.each([
    [2, 0.631],
    [3, 0.527],
    [4, 0.458],
    [8, 0.308],
    [16, 0.231],
    [256, 0.054],
  ])('§6: a member of a bundle of %i is as similar to it as measured (%f)', (count, expected) => {
    const members = Array.from({ length: count }, (_, i) => space.atom(`member ${i}`))
    const whole = bundle(members)
    const mean = members.reduce((sum, member) => sum + similarity(whole, member), 0) / count
    expect(Math.abs(mean - expected)).toBeLessThan(0.02)
    expect(Math.abs(mean - Math.sqrt(Math.PI) / 2 / Math.sqrt(count))).toBeLessThan(0.03)
  })

  it('§6: unrelated vectors have mean 0 and the standard deviation 1/√(2·dimensions)', () => {
    const values = Array.from({ length: 400 }, (_, i) => similarity(space.atom(`left ${i}`), space.atom(`right ${i}`)))
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length
    const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length)
    expect(Math.abs(mean)).toBeLessThan(0.005)
    expect(deviation).toBeGreaterThan(0.0195)
    expect(deviation).toBeLessThan(0.0245)
  })

  it('§6: the order of the entities of a fact makes no difference', () => {
    fc.assert(
      fc.property(fc.uniqueArray(word, { minLength: 2, maxLength: 5 }), (names) => {
        const [one, other] = [space.fact('text', names), space.fact('text', [...names].reverse())]
        expect(similarity(one, other)).toBeCloseTo(1, 9)
      }),
    )
  })
})
