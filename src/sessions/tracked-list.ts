/**
 * Knows which items of a list are on disk, so that a save can find the first one that differs without serialising
 * what did not change.
 *
 * An item that was replaced is seen by its identity. One that was edited in place is seen by comparing its fields, but
 * only in the newest stretch: comparing thousands on every save would cost what exists instead of what changed. So
 * older items are frozen, and editing one of them in place throws instead of being lost: replace it.
 */
export class TrackedList<T extends object> {
  readonly #items: T[] = []
  readonly #bytes: number[] = []
  /** Copies of the newest items, the last of them belonging to the last item. */
  readonly #copies: Copy[] = []
  #totalBytes = 0

  static readonly editable = 32

  get length(): number {
    return this.#items.length
  }

  get totalBytes(): number {
    return this.#totalBytes
  }

  /** The index of the first item that is not as it is on disk; the common length if all are. */
  firstChange(list: readonly T[]): number {
    const common = Math.min(list.length, this.#items.length)
    let same = 0
    while (same < common && list[same] === this.#items[same]) same += 1
    const offset = this.#items.length - this.#copies.length
    for (let at = offset; at < same; at++) {
      const item = list[at]
      const copy = this.#copies[at - offset]
      if (item === undefined || copy === undefined || !isUnchanged(item, copy)) return at
    }
    return same
  }

  /** The list on disk now has these items from `start` on, each with its size in bytes. */
  accept(start: number, items: readonly T[], bytes: readonly number[]): void {
    for (const dropped of this.#bytes.splice(start)) this.#totalBytes -= dropped
    this.#copies.length = Math.max(this.#copies.length - (this.#items.length - start), 0)
    this.#items.length = start
    // Of many new items only the newest get a copy: the others are past the stretch at once.
    const old = Math.max(items.length - TrackedList.editable, 0)
    if (old > 0) this.#freeze(this.#copies.length)
    items.forEach((item, at) => {
      this.#items.push(item)
      this.#bytes.push(bytes[at] ?? 0)
      this.#totalBytes += bytes[at] ?? 0
      if (at < old) freezeDeep(item)
      else this.#copies.push(copyOf(item))
    })
    this.#freeze(this.#copies.length - TrackedList.editable)
  }

  /** The oldest items that could still be edited leave that stretch. */
  #freeze(count: number): void {
    if (count <= 0) return
    const first = this.#items.length - this.#copies.length
    for (let at = first; at < first + count; at++) freezeDeep(this.#items[at])
    this.#copies.splice(0, count)
  }
}

interface Copy {
  readonly keys: number
  readonly plain: Readonly<Record<string, unknown>>
  /** Nested values, serialised. */
  readonly nested: Readonly<Record<string, string>> | undefined
}

function copyOf(item: object): Copy {
  const plain: Record<string, unknown> = {}
  let nested: Record<string, string> | undefined
  const entries = Object.entries(item)
  for (const [key, value] of entries) {
    if (typeof value === 'object' && value !== null) (nested ??= {})[key] = JSON.stringify(value)
    else plain[key] = value
  }
  return { keys: entries.length, plain, nested }
}

function isUnchanged(item: object, copy: Copy): boolean {
  let keys = 0
  for (const key in item) {
    keys += 1
    const value: unknown = item[key as keyof typeof item]
    if (typeof value === 'object' && value !== null) {
      if (copy.nested?.[key] !== JSON.stringify(value)) return false
    } else if (value !== copy.plain[key]) return false
  }
  return keys === copy.keys
}

/** All but bytes: JavaScript cannot freeze those, and says so by throwing. */
function freezeDeep(value: unknown): void {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const key in value) freezeDeep(value[key as keyof typeof value])
}
