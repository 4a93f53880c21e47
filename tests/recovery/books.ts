import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { allSegments, watermark } from '../../src/core/index.js'
import type { Ledger } from '../../src/ledger/ledger.js'

interface Turn {
  readonly text: string
  readonly owner: string
}

/** What the dead processes had promised and what the provider knows, read from the files they left. */
export class Books {
  readonly acknowledged = new Map<string, Map<number, Turn>>()
  readonly #learned = new Map<string, Map<number, string>>()
  readonly #offers = new Map<string, { from: number; to: number }>()
  readonly #keys = new Map<string, string>()
  readonly #lost = new Set<string>()
  calls = 0
  repeats = 0
  recovered = 0
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  get marks(): number {
    return [...this.acknowledged.values()].reduce((sum, turns) => sum + turns.size, 0)
  }

  /** Reads both files again. A line without its end was never written. */
  read(): void {
    this.acknowledged.clear()
    this.#learned.clear()
    this.#offers.clear()
    this.#keys.clear()
    this.#lost.clear()
    this.calls = this.repeats = this.recovered = 0
    for (const [sessionId, generation, text = '', owner = ''] of this.#lines('acknowledged')) {
      const turns = into(this.acknowledged, sessionId)
      expect(turns.has(Number(generation)), `generation ${generation} of ${sessionId} was given twice`).toBe(false)
      turns.set(Number(generation), { text, owner })
    }
    for (const [kind, sessionId, ...rest] of this.#lines('books')) this.#note(kind, sessionId, rest)
  }

  #note(kind: string, sessionId: string, fields: readonly string[]): void {
    const [one = '', two = '', key = '', last = ''] = fields
    switch (kind) {
      case 'call': {
        this.calls += 1
        const offered = this.#offers.get(key)
        if (offered !== undefined) this.repeats += 1
        // A key names one range for ever; a range gets a new one only when its settlement certainly failed (C10).
        const place = `${sessionId}:${one}`
        const before = this.#keys.get(place) ?? key
        if (before !== key) expect(this.#lost.has(before), `${place} was offered under a second key`).toBe(true)
        this.#keys.set(place, key)
        expect(offered ?? { from: Number(one), to: Number(two) }).toEqual({ from: Number(one), to: Number(two) })
        this.#offers.set(key, { from: Number(one), to: Number(two) })
        break
      }
      case 'turn': {
        const turn = this.acknowledged.get(sessionId)?.get(Number(one))
        // A turn whose mark was stored but never acknowledged may turn up: a failure to answer is not a promise of absence.
        if (turn !== undefined) expect(two, `the text of ${sessionId}:${one}`).toBe(turn.text)
        break
      }
      case 'done': {
        const learned = into(this.#learned, sessionId)
        for (let generation = Number(one); generation <= Number(two); generation += 1) {
          const before = learned.get(generation)
          // Learned twice only under one key: then a provider that remembers keys learned it once.
          if (before !== undefined) expect(key, `${sessionId}:${generation} was learned under two keys`).toBe(before)
          learned.set(generation, key)
          const owner = this.acknowledged.get(sessionId)?.get(generation)?.owner
          if (owner !== undefined) expect(last, `the owner of ${sessionId}:${generation}`).toBe(owner)
        }
        break
      }
      case 'lost':
        this.#lost.add(one)
        break
      case 'recovered':
        this.recovered += 1
        break
      default:
        throw new Error(`an unknown line: ${kind}`)
    }
  }

  /** R5, L8–L10: holds what the ledger says against what was promised and what was learned. */
  async check(ledger: Ledger): Promise<void> {
    for (const [sessionId, turns] of this.acknowledged) {
      const { state } = await ledger.transact(sessionId, (found) => ({ state: found, result: undefined, events: [] }))
      const learned = this.#learned.get(sessionId) ?? new Map<number, string>()
      expect(state.generation).toBeGreaterThanOrEqual(Math.max(...turns.keys()))
      for (let generation = 1; generation <= watermark(state); generation += 1) {
        expect(
          learned.has(generation),
          `the watermark of ${sessionId} passed ${generation}, which nobody learned`,
        ).toBe(true)
      }
      const texts = new Map<number, string>()
      for await (const { generation, messages } of ledger.outbox(sessionId, 1, Infinity))
        texts.set(generation, messages ?? '')
      const open = allSegments(state)
      for (const [generation, { text }] of turns) {
        const isOpen = open.some(({ from, to }) => from <= generation && generation <= to)
        if (isOpen) expect(texts.get(generation), `the text of ${sessionId}:${generation}`).toBe(JSON.stringify([text]))
        else expect(learned.has(generation), `${sessionId}:${generation} is gone and nobody learned it`).toBe(true)
      }
    }
  }

  #lines(name: string): [string, string, ...string[]][] {
    const path = join(this.#directory, name)
    const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
    const whole = text.slice(0, text.lastIndexOf('\n') + 1)
    return whole
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.split('\t') as [string, string, ...string[]])
  }
}

function into<V>(map: Map<string, Map<number, V>>, key: string): Map<number, V> {
  const found = map.get(key)
  if (found !== undefined) return found
  const made = new Map<number, V>()
  map.set(key, made)
  return made
}
