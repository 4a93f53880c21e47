import { hash } from 'node:crypto'

/**
 * Holographic reduced representations as phase vectors: arrays of angles in [0, 2π). Binding adds angles, bundling adds
 * unit arrows. The numbers are those of the Python plugin whose databases we share, so nothing here may be "improved".
 */
export type Vector = Float64Array

export const TWO_PI = 2 * Math.PI

/** An atom is `dimensions` whole steps of 2π/65536; kept as steps it takes a quarter of the memory and adds exactly. */
type Steps = Uint16Array
const STEPS = 65_536
const STEPS_PER_DIGEST = 16
const EMPTY_TEXT = '__hrr_empty__'

/** What Python's `str.split()` calls white space; JavaScript's `\s` lacks some of it and adds U+FEFF. */
const WHITE_SPACE = new Set([
  ...[0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680],
  ...[0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a],
  ...[0x2028, 0x2029, 0x202f, 0x205f, 0x3000],
])
const EDGE_PUNCTUATION = new Set('.,!?;:"\'()[]{}')

/** The remainder that is never negative. A hair below zero rounds up to 2π itself, which is 0. */
function wrap(angle: number): number {
  const rest = angle % TWO_PI
  const positive = rest < 0 ? rest + TWO_PI : rest
  return positive < TWO_PI ? positive : 0
}

export function bind(a: Vector, b: Vector): Vector {
  return a.map((angle, i) => wrap(angle + (b[i] ?? 0)))
}

export function unbind(bound: Vector, key: Vector): Vector {
  return bound.map((angle, i) => wrap(angle - (key[i] ?? 0)))
}

/** Mean cosine of the differences: 1 for equal vectors, about 0 for unrelated ones, -1 for opposite ones. */
export function similarity(a: Vector, b: Vector): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += Math.cos((a[i] ?? 0) - (b[i] ?? 0))
  return sum / a.length
}

/** The sum of unit arrows, one per dimension: what a bundle is before only its direction is kept. */
export class ArrowSum {
  readonly re: Float64Array
  readonly im: Float64Array

  constructor(dimensions: number) {
    this.re = new Float64Array(dimensions)
    this.im = new Float64Array(dimensions)
  }

  /** `sign` -1 takes a vector out again. */
  add(vector: Vector, sign: 1 | -1 = 1): this {
    const { re, im } = this
    for (let i = 0; i < re.length; i++) {
      const angle = vector[i] ?? 0
      re[i] = (re[i] ?? 0) + sign * Math.cos(angle)
      im[i] = (im[i] ?? 0) + sign * Math.sin(angle)
    }
    return this
  }

  direction(): Vector {
    const { re, im } = this
    const vector = new Float64Array(re.length)
    for (let i = 0; i < vector.length; i++) vector[i] = wrap(Math.atan2(im[i] ?? 0, re[i] ?? 0))
    return vector
  }
}

export function bundle(vectors: readonly Vector[]): Vector {
  const sum = new ArrowSum(vectors[0]?.length ?? 0)
  for (const vector of vectors) sum.add(vector)
  return sum.direction()
}

export function tokenize(text: string): string[] {
  const tokens: string[] = []
  let token = ''
  const end = (): void => {
    const stripped = stripEdges(token)
    if (stripped !== '') tokens.push(stripped)
    token = ''
  }
  for (const char of text.toLowerCase()) {
    if (WHITE_SPACE.has(char.codePointAt(0) ?? 0)) end()
    else token += char
  }
  end()
  return tokens
}

function stripEdges(token: string): string {
  let from = 0
  let to = token.length
  while (from < to && EDGE_PUNCTUATION.has(token.charAt(from))) from++
  while (to > from && EDGE_PUNCTUATION.has(token.charAt(to - 1))) to--
  return token.slice(from, to)
}

/** Hashing an atom costs 64 digests at 1,024 dimensions, so the ones of late are remembered. */
const REMEMBERED_ATOMS = 2_048

/** Everything that needs a dimension. One per open database. */
export class VectorSpace {
  readonly dimensions: number
  readonly contentRole: Vector
  readonly entityRole: Vector
  readonly #atoms = new Map<string, Steps>()
  readonly #cos = new Float64Array(STEPS)
  readonly #sin = new Float64Array(STEPS)
  readonly #entityRoleSteps: Steps

  constructor(dimensions: number) {
    this.dimensions = dimensions
    for (let step = 0; step < STEPS; step++) {
      const angle = (step * TWO_PI) / STEPS
      this.#cos[step] = Math.cos(angle)
      this.#sin[step] = Math.sin(angle)
    }
    this.contentRole = this.atom('__hrr_role_content__')
    this.entityRole = this.atom('__hrr_role_entity__')
    this.#entityRoleSteps = this.#steps('__hrr_role_entity__')
  }

  atom(word: string): Vector {
    return Float64Array.from(this.#steps(word), (step) => (step * TWO_PI) / STEPS)
  }

  /** The key under which an entity stands in the vector of a fact. */
  entityKey(name: string): Vector {
    return bind(this.atom(name.toLowerCase()), this.entityRole)
  }

  text(text: string): Vector {
    return this.#textSum(text).direction()
  }

  /** The direction in which a fact lies whose content is about this text. Unbound, a query compares with nothing. */
  contentKey(text: string): Vector {
    return bind(this.text(text), this.contentRole)
  }

  fact(content: string, entities: readonly string[]): Vector {
    const sum = new ArrowSum(this.dimensions).add(this.contentKey(content))
    for (const name of entities) this.#addSteps(sum, this.#steps(name.toLowerCase()), this.#entityRoleSteps)
    return sum.direction()
  }

  #textSum(text: string): ArrowSum {
    const tokens = tokenize(text)
    const sum = new ArrowSum(this.dimensions)
    for (const token of tokens.length > 0 ? tokens : [EMPTY_TEXT]) this.#addSteps(sum, this.#steps(token))
    return sum
  }

  #addSteps(sum: ArrowSum, atom: Steps, role?: Steps): void {
    const { re, im } = sum
    for (let i = 0; i < re.length; i++) {
      const step = ((atom[i] ?? 0) + (role?.[i] ?? 0)) % STEPS
      re[i] = (re[i] ?? 0) + (this.#cos[step] ?? 0)
      im[i] = (im[i] ?? 0) + (this.#sin[step] ?? 0)
    }
  }

  #steps(word: string): Steps {
    const known = this.#atoms.get(word)
    if (known !== undefined) {
      // Map keeps insertion order: moved to the end, the first is always the one unused for longest.
      this.#atoms.delete(word)
      this.#atoms.set(word, known)
      return known
    }
    const steps = new Uint16Array(this.dimensions)
    for (let from = 0; from < this.dimensions; from += STEPS_PER_DIGEST) {
      const digest = hash('sha256', `${word}:${from / STEPS_PER_DIGEST}`, 'buffer')
      for (let i = 0; i < STEPS_PER_DIGEST && from + i < this.dimensions; i++) {
        steps[from + i] = digest.readUInt16LE(2 * i)
      }
    }
    this.#atoms.set(word, steps)
    if (this.#atoms.size > REMEMBERED_ATOMS) {
      for (const oldest of this.#atoms.keys()) {
        this.#atoms.delete(oldest)
        break
      }
    }
    return steps
  }
}
