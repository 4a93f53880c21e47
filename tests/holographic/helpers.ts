import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach } from 'vitest'
import { loadSqlite, type SqlDatabase } from '../../src/base/sqlite.js'
import type { Clock } from '../../src/base/clock.js'
import type { CompletedTurn, MemoryCommit } from '../../src/coordinator/agent.js'
import { HolographicProvider, type HolographicOptions } from '../../src/providers/holographic/index.js'

const opened: HolographicProvider[] = []
const folders: string[] = []

afterEach(async () => {
  for (const memory of opened.splice(0).reverse()) await memory.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

/** A folder that is gone after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-holographic-'))
  folders.push(folder)
  return folder
}

export const temporaryPath = (): string => join(temporaryFolder(), 'memory.db')

/** Small vectors keep tests quick; where the vectors matter a test asks for 1,024. */
export async function openMemory(options: Partial<HolographicOptions> = {}): Promise<HolographicProvider> {
  const memory = await HolographicProvider.open({ path: ':memory:', dimensions: 256, ...options })
  opened.push(memory)
  return memory
}

export async function openFile(path: string, options: Partial<HolographicOptions> = {}): Promise<HolographicProvider> {
  const memory = await HolographicProvider.open({ path, ...options })
  opened.push(memory)
  return memory
}

/** The file itself, past the provider. */
export async function withDatabase<T>(path: string, work: (db: SqlDatabase) => T | Promise<T>): Promise<T> {
  const { DatabaseSync } = await loadSqlite()
  const db = new DatabaseSync(path)
  try {
    return await work(db)
  } finally {
    db.close()
  }
}

/** The same database as one plain file without a log: what a test may damage and compare byte by byte. */
export async function plainCopy(path: string): Promise<string> {
  const copy = temporaryPath()
  await withDatabase(path, (db) => db.prepare('VACUUM INTO ?').run(copy))
  return copy
}

export function user(content: unknown): { role: string; content: unknown } {
  return { role: 'user', content }
}

export function turn(generation: number, ...messages: unknown[]): CompletedTurn {
  return { sessionId: 's', generation, messages, completedAt: 0 }
}

export function commitOf(
  idempotencyKey: string,
  turns: readonly CompletedTurn[],
  signal = new AbortController().signal,
): MemoryCommit {
  return {
    sessionId: 's',
    from: turns[0]?.generation ?? 1,
    to: turns.at(-1)?.generation ?? 1,
    attempt: 1,
    reason: 'manual',
    idempotencyKey,
    signal,
    async *turns() {
      yield* turns
    },
  }
}

/** Time that stands where it is put. */
export function fixedClock(start = Date.UTC(2026, 0, 1)): Clock & { nowMs: number } {
  return {
    nowMs: start,
    now() {
      return this.nowMs
    },
    setTimer() {
      throw new Error('the holographic provider sets no timers')
    },
  }
}

export const contents = (facts: readonly { content: string }[]): string[] => facts.map(({ content }) => content)
