import { createHash } from 'node:crypto'

/**
 * One provider session a segment, named by what the ledger keeps anyway: after a crash the same names come out, so the
 * server can be asked what it has. The key is new after a failed extraction, and so the session is fresh. `series`
 * counts the sessions that one key needed (see commit.ts).
 */
export function providerSessionId(sessionId: string, idempotencyKey: string, series: number): string {
  const digest = createHash('sha256').update(`${sessionId}\0${idempotencyKey}`).digest('hex').slice(0, 40)
  return `tm-${digest}-${series}`
}

/** Generations are never reused in a ledger, so this names a turn for ever. */
export const turnId = (sessionId: string, generation: number): string => `${sessionId}:${generation}`
