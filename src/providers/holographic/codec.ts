import type { Vector } from './vectors.js'

/**
 * Two ways in which a vector may stand in the database: `float64` is 8 bytes a dimension and nothing else; `float32` is
 * the four letters HRR1 and 4 bytes a dimension. Both little-endian, told apart by their exact length.
 */
export type VectorFormat = 'float32' | 'float64'

const MAGIC = Buffer.from('HRR1')

export function encodeVector(vector: Vector, format: VectorFormat): Uint8Array {
  // With one dimension the two lengths are the same, and a reader takes eight bytes for a float64.
  if (format === 'float64' || vector.length === 1) {
    const blob = Buffer.alloc(8 * vector.length)
    vector.forEach((angle, i) => blob.writeDoubleLE(angle, 8 * i))
    return blob
  }
  const blob = Buffer.alloc(MAGIC.length + 4 * vector.length)
  MAGIC.copy(blob)
  vector.forEach((angle, i) => blob.writeFloatLE(angle, MAGIC.length + 4 * i))
  return blob
}

/** Undefined for a blob that is no vector of this dimension: one damaged row must not cost the whole answer. */
export function decodeVector(blob: Uint8Array, dimensions: number): Vector | undefined {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength)
  const vector = new Float64Array(dimensions)
  if (blob.byteLength === 8 * dimensions) {
    for (let i = 0; i < dimensions; i++) vector[i] = view.getFloat64(8 * i, true)
    return vector
  }
  if (blob.byteLength === MAGIC.length + 4 * dimensions && hasMagic(blob)) {
    for (let i = 0; i < dimensions; i++) vector[i] = view.getFloat32(MAGIC.length + 4 * i, true)
    return vector
  }
  return undefined
}

/** What the length of a blob says about a database that does not say it itself. */
export function describeBlob(blob: Uint8Array): { dimensions: number; format: VectorFormat } | undefined {
  const floats = (blob.byteLength - MAGIC.length) / 4
  if (hasMagic(blob) && Number.isInteger(floats) && floats > 1) return { dimensions: floats, format: 'float32' }
  const doubles = blob.byteLength / 8
  return Number.isInteger(doubles) && doubles > 0 ? { dimensions: doubles, format: 'float64' } : undefined
}

function hasMagic(blob: Uint8Array): boolean {
  return MAGIC.equals(blob.subarray(0, MAGIC.length))
}
