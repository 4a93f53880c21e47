import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeVector, describeBlob, encodeVector } from '../../src/providers/holographic/codec.js'
import { VectorSpace } from '../../src/providers/holographic/vectors.js'

const angles = fc
  .array(fc.double({ min: 0, max: 6.28, noNaN: true }), { minLength: 1, maxLength: 40 })
  .map((values) => Float64Array.from(values))

describe('vector blobs', () => {
  it('§6: float64 is 8 bytes a dimension and comes back exactly', () => {
    fc.assert(
      fc.property(angles, (vector) => {
        const blob = encodeVector(vector, 'float64')
        expect(blob.byteLength).toBe(8 * vector.length)
        expect(decodeVector(blob, vector.length)).toEqual(vector)
      }),
    )
  })

  it('§6: float32 is HRR1 and 4 bytes a dimension, 4,100 at 1,024', () => {
    const vector = new VectorSpace(1024).atom('hello')
    const blob = encodeVector(vector, 'float32')
    expect(blob.byteLength).toBe(4_100)
    expect(Buffer.from(blob.subarray(0, 4)).toString()).toBe('HRR1')
    expect(decodeVector(blob, 1024)).toEqual(Float64Array.from(vector, Math.fround))
  })

  it('§6: at one dimension the lengths collide, and float64 is written', () => {
    const blob = encodeVector(Float64Array.of(1.5), 'float32')
    expect(blob.byteLength).toBe(8)
    expect(decodeVector(blob, 1)).toEqual(Float64Array.of(1.5))
  })

  it('§6: anything of another length, or without the mark, is no vector', () => {
    expect(decodeVector(new Uint8Array(4_099), 1024)).toBeUndefined()
    expect(decodeVector(new Uint8Array(4_100), 1024)).toBeUndefined()
    expect(decodeVector(new Uint8Array(0), 1024)).toBeUndefined()
  })

  it('§6: a blob that does not start at a multiple of 8 in memory is read all the same', () => {
    const blob = encodeVector(Float64Array.of(1, 2, 3), 'float64')
    const shifted = new Uint8Array(blob.byteLength + 3)
    shifted.set(blob, 3)
    expect(decodeVector(shifted.subarray(3), 3)).toEqual(Float64Array.of(1, 2, 3))
  })

  it('the format and the dimension of a blob are told from the blob alone', () => {
    fc.assert(
      fc.property(angles, fc.constantFrom('float32' as const, 'float64' as const), (vector, format) => {
        const written = vector.length === 1 ? 'float64' : format
        expect(describeBlob(encodeVector(vector, format))).toEqual({ dimensions: vector.length, format: written })
      }),
    )
    expect(describeBlob(new Uint8Array(7))).toBeUndefined()
  })
})
