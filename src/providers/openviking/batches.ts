import type { MemoryCommit } from '../../coordinator/agent.js'
import { translateTurn, type WireMessage } from './messages.js'

/** What the server takes in one request, and what a request should weigh. */
const MAX_MESSAGES = 100
const MAX_BYTES = 1024 * 1024

/** The messages of a segment from the `skip`-th on, in requests of bounded size; one huge message goes alone. */
export async function* batchesOf(
  commit: MemoryCommit,
  peer: string | undefined,
  skip: number,
): AsyncGenerator<readonly WireMessage[], void, undefined> {
  let batch: WireMessage[] = []
  let bytes = 0
  let position = 0
  for await (const turn of commit.turns()) {
    for (const message of translateTurn(turn, peer)) {
      position += 1
      if (position <= skip) continue
      const size = Buffer.byteLength(JSON.stringify(message))
      if (batch.length > 0 && (batch.length >= MAX_MESSAGES || bytes + size > MAX_BYTES)) {
        yield batch
        batch = []
        bytes = 0
      }
      batch.push(message)
      bytes += size
    }
  }
  if (batch.length > 0) yield batch
}

export async function countMessages(commit: MemoryCommit, peer: string | undefined): Promise<number> {
  let count = 0
  for await (const turn of commit.turns()) count += translateTurn(turn, peer).length
  return count
}

export async function hasMessages(commit: MemoryCommit, peer: string | undefined): Promise<boolean> {
  for await (const turn of commit.turns()) if (translateTurn(turn, peer).length > 0) return true
  return false
}
