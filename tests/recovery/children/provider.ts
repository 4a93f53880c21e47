import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import type { CommitAnswer, MemoryAgent, MemoryCommit, SettleAnswer } from '../../../src/index.js'

/** Lines that are in the file the moment `write` returns: a killed process cannot take them back. */
export class LineFile {
  readonly #file: number

  constructor(path: string) {
    this.#file = openSync(path, 'a', 0o600)
  }

  write(...fields: readonly (string | number)[]): void {
    writeSync(this.#file, `${fields.join('\t')}\n`)
  }

  close(): void {
    fsyncSync(this.#file)
    closeSync(this.#file)
  }
}

export interface Moments {
  /** Called at named points; may not return. */
  at(moment: 'inside' | 'after'): void
  random(): number
}

/**
 * A memory provider whose books outlive every process: it notes each call when it begins, every turn it is given, and
 * what it has learned for good. Sometimes it fails, sometimes it accepts and finishes later.
 */
export function bookkeeper(agentId: string, books: LineFile, moments: Moments): MemoryAgent {
  const read = async (commit: MemoryCommit): Promise<void> => {
    books.write('call', commit.sessionId, commit.from, commit.to, commit.idempotencyKey, commit.attempt)
    for await (const { generation, messages } of commit.turns()) {
      books.write('turn', commit.sessionId, generation, String(messages[0]), commit.idempotencyKey)
    }
  }
  const learn = ({ sessionId, from, to, idempotencyKey }: MemoryCommit): void =>
    books.write('done', sessionId, from, to, idempotencyKey, agentId)
  return {
    agentId,
    async commitMemorySession(commit): Promise<CommitAnswer> {
      moments.at('inside')
      await read(commit)
      if (moments.random() < 0.1) throw new Error('not now')
      // A provider that remembers keys does the same with the same key, whoever asks and however often: what it has
      // learned it never calls lost.
      if (crc32(commit.idempotencyKey) % 6 === 0) {
        return { status: 'accepted', receipt: `receipt of ${commit.idempotencyKey}` }
      }
      learn(commit)
      moments.at('after')
      return { status: 'committed' }
    },
    settleMemoryCommit(receipt, commit): SettleAnswer {
      if (receipt !== `receipt of ${commit.idempotencyKey}`) throw new Error(`a foreign receipt: ${receipt}`)
      if (moments.random() < 0.3) return { status: 'pending' }
      if (crc32(receipt) % 8 === 0) {
        books.write('lost', commit.sessionId, commit.idempotencyKey)
        return { status: 'failed', error: new Error('lost it') }
      }
      learn(commit)
      return { status: 'committed' }
    },
  }
}
