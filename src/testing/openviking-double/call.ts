import { invalid, isRecord, routeMissing, sessionMissing, WireError, type Answer } from './envelope.js'
import { Killed, type Phase1Fault } from './commit.js'
import { ownerOf, sessionKey, type Identity, type Session, type World } from './model.js'
import type { Phase2 } from './phase2.js'

/** One request, routed and authenticated. */
export interface Call {
  readonly world: World
  readonly phase2: Phase2
  readonly who: Identity
  /** The variable parts of the path, in order. */
  readonly params: readonly string[]
  readonly query: URLSearchParams
  readonly body: unknown
  readonly fault: Phase1Fault | undefined
  /** False once the server was restarted under this call. */
  readonly alive: () => boolean
}

export type Handler = (call: Call) => Answer | Promise<Answer>

export const param = (call: Call, index: number): string => call.params[index] ?? ''

export const ownSession = (call: Call, id: string): Session | undefined =>
  call.world.sessions.get(sessionKey(ownerOf(call.who), id))

export function requireSession(call: Call): Session {
  const session = ownSession(call, param(call, 0))
  if (session === undefined) throw sessionMissing(param(call, 0))
  return session
}

export function bodyOf(call: Call): Record<string, unknown> {
  if (call.body === undefined || call.body === null) return {}
  if (!isRecord(call.body)) throw invalid('body', 'Input should be a valid dictionary', 'model_type')
  return call.body
}

/** FastAPI models with `extra = forbid`. */
export function forbidExtra(body: Record<string, unknown>, known: readonly string[]): void {
  for (const key of Object.keys(body))
    if (!known.includes(key)) throw invalid(`body.${key}`, 'Extra inputs are not permitted', 'extra_forbidden')
}

export function requireFeature(call: Call, feature: 'batch' | 'context' | 'cancel'): void {
  if (!call.world.features[feature]) throw routeMissing()
}

export function createSession(call: Call, id: string): Session {
  const now = new Date().toISOString()
  const session: Session = {
    id,
    owner: ownerOf(call.who),
    live: [],
    archives: [],
    commitCount: 0,
    totalMessages: 0,
    keepRecentCount: 0,
    pendingTokens: 0,
    autoCommitPolicy: undefined,
    memoriesExtracted: 0,
    createdAt: now,
    updatedAt: now,
    lastCommitAt: null,
    lastMessageAt: null,
  }
  call.world.sessions.set(sessionKey(session.owner, id), session)
  return session
}

/** Runs under the session's lock; busy after the wait is 409, and it can hit append as well as commit. */
export async function locked<T>(call: Call, run: () => T): Promise<T> {
  const id = param(call, 0)
  const release = await call.world.locks.acquire(id)
  if (release === undefined) {
    // `error_mapping.py:457-464`, `crates/ragfs-python/src/lib.rs:161-181`.
    const uri = `viking://user/${call.who.user}/sessions/${id}`
    throw new WireError(409, 'CONFLICT', `Path is busy: ${uri}`, {
      resource: uri,
      uri,
      conflict_type: 'path_busy',
      retryable: true,
    })
  }
  try {
    if (!call.alive()) throw new Killed()
    return run()
  } finally {
    release()
  }
}
