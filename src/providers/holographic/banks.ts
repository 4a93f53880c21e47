import type { Connection } from './connection.js'
import { decodeVector, encodeVector, type VectorFormat } from './codec.js'
import { ArrowSum, type VectorSpace, type Vector } from './vectors.js'

/** What a write does to one category: vectors that came and went. */
export interface BankChange {
  readonly category: string
  readonly vector: Vector
  readonly sign: 1 | -1
}

/**
 * The bundle of each category, which the Python plugin keeps in `memory_banks`. Ours ranks without it; it is kept in
 * step so that the plugin finds it right. The sum behind the bundle is stored, so a write costs the same however many
 * facts there are. A category without a stored sum (the plugin wrote to it) is summed up afresh.
 */
export class Banks {
  readonly #connection: Connection
  readonly #space: VectorSpace
  readonly #format: VectorFormat

  constructor(connection: Connection, space: VectorSpace, format: VectorFormat) {
    this.#connection = connection
    this.#space = space
    this.#format = format
  }

  /** Call it after the rows of `facts` have changed, in the same transaction. */
  apply(changes: readonly BankChange[], now: string): void {
    for (const category of new Set(changes.map((change) => change.category))) {
      const group = changes.filter((change) => change.category === category)
      const stored = this.#read(category)
      const { sum, count } = stored === undefined ? this.#sumUp(category) : stored
      let total = count
      if (stored !== undefined) {
        for (const { vector, sign } of group) {
          sum.add(vector, sign)
          total += sign
        }
      }
      this.#write(category, sum, total, now)
    }
  }

  /** The plugin changed this category: what we stored of it counts no more. */
  forget(category: string): void {
    this.#connection.run('DELETE FROM tidemark_banks WHERE category = ?', category)
  }

  #read(category: string): { sum: ArrowSum; count: number } | undefined {
    const row = this.#connection.get('SELECT re, im, fact_count FROM tidemark_banks WHERE category = ?', category)
    if (row === undefined) return undefined
    const { re, im } = row
    const size = this.#space.dimensions
    if (!(re instanceof Uint8Array) || !(im instanceof Uint8Array)) return undefined
    const [real, imaginary] = [decodeVector(re, size), decodeVector(im, size)]
    if (real === undefined || imaginary === undefined) return undefined
    const sum = new ArrowSum(size)
    sum.re.set(real)
    sum.im.set(imaginary)
    return { sum, count: Number(row['fact_count']) }
  }

  #sumUp(category: string): { sum: ArrowSum; count: number } {
    const sum = new ArrowSum(this.#space.dimensions)
    let count = 0
    const rows = this.#connection.iterate(
      'SELECT hrr_vector AS blob FROM facts WHERE category = ? AND hrr_vector IS NOT NULL',
      category,
    )
    for (const { blob } of rows) {
      const vector = blob instanceof Uint8Array ? decodeVector(blob, this.#space.dimensions) : undefined
      if (vector === undefined) continue
      sum.add(vector)
      count++
    }
    return { sum, count }
  }

  #write(category: string, sum: ArrowSum, count: number, now: string): void {
    const name = `cat:${category}`
    if (count <= 0) {
      this.forget(category)
      this.#connection.run('DELETE FROM memory_banks WHERE bank_name = ?', name)
      return
    }
    this.#connection.run(
      'INSERT OR REPLACE INTO tidemark_banks (category, re, im, fact_count) VALUES (?, ?, ?, ?)',
      category,
      encodeVector(sum.re, 'float64'),
      encodeVector(sum.im, 'float64'),
      count,
    )
    this.#connection.run(
      `INSERT INTO memory_banks (bank_name, vector, dim, fact_count, updated_at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (bank_name) DO UPDATE
       SET vector = excluded.vector, dim = excluded.dim, fact_count = excluded.fact_count, updated_at = excluded.updated_at`,
      name,
      encodeVector(sum.direction(), this.#format),
      this.#space.dimensions,
      count,
      now,
    )
  }
}
