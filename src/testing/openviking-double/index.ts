/**
 * A double of the OpenViking HTTP server, for tests: it speaks the session API as the server's source stood at commit
 * 6e944cc (just after v0.4.16) and as three older releases did, keeps everything in memory, extracts nothing, and counts
 * what a real server would have extracted. Each behaviour names the file of that source it was read from; no code of
 * the server is used.
 */
import { FaultPlan, type Gate } from './faults.js'
import type { Phase1Fault } from './commit.js'
import { internalError, type Answer } from './envelope.js'
import { SessionLocks } from './locks.js'
import type { AuthMode, DoubleStats, World } from './model.js'
import { Phase2, type Phase2Outcome } from './phase2.js'
import { profiles, type OpenVikingProfile } from './profile.js'
import type { Operation } from './routes.js'
import { DoubleServer } from './server.js'

export interface OpenVikingDoubleOptions {
  /** @default 0: a free one */
  readonly port?: number
  /** @default 'dev' */
  readonly authMode?: AuthMode
  /** The release it behaves like. @default '0.4.16' */
  readonly profile?: OpenVikingProfile
}

export interface OpenVikingDouble {
  readonly url: string
  readonly controls: OpenVikingControls
  readonly stats: DoubleStats
  close(): Promise<void>
}

/** What a test may do to the server; nothing of it is on the wire. */
export interface OpenVikingControls {
  /** The keys of api_key and trusted mode. `addUser` makes more. */
  readonly keys: { readonly root: string; readonly user: string }
  addUser(account: string, user: string): string
  /** The worker takes no further task; a task that starts stays `running`. */
  holdPhase2(): void
  /** Ends one held task, or lets the worker go on with all. */
  releasePhase2(taskId?: string, outcome?: Phase2Outcome): void
  /** The next extractions end `failed`, one per text. */
  failPhase2(...errors: string[]): void
  /** Extractions complete without a memory. */
  extractNothing(): void
  /** Takes the lock of a session; the result gives it back. */
  holdLock(sessionId: string): Promise<() => void>
  /** How long append and commit wait for that lock. @default 30_000 */
  lockWaitMs: number
  /** 500 for the next request of that kind: not applied, applied, or in the middle of Phase 1. */
  failNext(op: Operation, at: 'before' | 'after' | Phase1Fault): void
  /** Another answer for the next request of that kind, which is applied or not. */
  answerNext(op: Operation, answer: Answer, at?: 'before' | 'after'): void
  /** Closes the connection before the request is applied. */
  dropRequest(op: Operation): void
  /** Applies the request, then closes the connection. */
  dropResponse(op: Operation): void
  delay(op: Operation, ms: number, at?: 'before' | 'after'): void
  /** Holds the next request of that kind until it is released. */
  gate(op: Operation, at: 'before' | 'after'): Gate
  /** How many planned faults have not met their request yet. */
  pendingFaults(): number
  restart(options: { readonly graceful: boolean }): Promise<void>
  /** Retention is over (completed 24 h, failed 7 days): the task is gone. */
  expireTask(taskId: string): void
  /** What `/ready` says. */
  setReady(ready: boolean): void
  /** Server-side auto commit, for sessions without a policy of their own: above so many live messages. */
  autoCommitOver(messages: number | undefined): void
  /** The commit tasks, oldest first. */
  tasks(): readonly { readonly id: string; readonly sessionId: string; readonly status: string }[]
  /** The sessions, with what is in them. */
  sessions(): readonly { readonly id: string; readonly live: number; readonly archives: readonly string[] }[]
}

export async function startOpenVikingDouble(options: OpenVikingDoubleOptions = {}): Promise<OpenVikingDouble> {
  const profile = options.profile ?? '0.4.16'
  const world: World = {
    profile,
    features: profiles[profile],
    authMode: options.authMode ?? 'dev',
    sessions: new Map(),
    tasks: new Map(),
    memories: [],
    locks: new SessionLocks(),
    stats: { requests: {}, extracted: {}, extractedMessages: {} },
    keys: new Map(),
    ready: true,
    autoCommitOver: undefined,
  }
  const phase2 = new Phase2(world)
  const faults = new FaultPlan()
  const server = new DoubleServer(world, phase2, faults)
  await server.listen(options.port ?? 0)
  return {
    url: `http://127.0.0.1:${server.port}`,
    controls: makeControls(world, phase2, faults, server),
    stats: world.stats,
    close: () => server.stop(),
  }
}

function makeControls(world: World, phase2: Phase2, faults: FaultPlan, server: DoubleServer): OpenVikingControls {
  const addKey = (account: string, user: string, role: 'root' | 'user'): string => {
    const key = `double-${role}-key-${world.keys.size + 1}`
    world.keys.set(key, { account, user, role })
    return key
  }
  return {
    keys: { root: addKey('default', 'default', 'root'), user: addKey('default', 'default', 'user') },
    addUser: (account, user) => addKey(account, user, 'user'),
    holdPhase2: () => (phase2.holding = true),
    releasePhase2: (taskId, outcome) => phase2.release(taskId, outcome),
    failPhase2: (...errors) => phase2.failures.push(...errors),
    extractNothing: () => (phase2.barren = true),
    async holdLock(sessionId) {
      const release = await world.locks.acquire(sessionId)
      if (release === undefined) throw new Error(`holdLock: ${sessionId} stayed busy`)
      return release
    },
    get lockWaitMs() {
      return world.locks.waitMs
    },
    set lockWaitMs(ms) {
      world.locks.waitMs = ms
    },
    failNext(op, at) {
      if (at === 'before' || at === 'after') faults.add(op, { answer: { at, answer: internalError().toAnswer() } })
      else faults.add(op, { phase1: at })
    },
    answerNext: (op, answer, at = 'before') => faults.add(op, { answer: { at, answer } }),
    dropRequest: (op) => faults.add(op, { drop: 'before' }),
    dropResponse: (op) => faults.add(op, { drop: 'after' }),
    delay: (op, ms, at = 'before') => faults.add(op, { delay: { at, ms } }),
    gate: (op, at) => faults.gate(op, at),
    pendingFaults: () => faults.size,
    restart: ({ graceful }) => server.restart(graceful),
    expireTask: (taskId) => void world.tasks.delete(taskId),
    setReady: (ready) => (world.ready = ready),
    autoCommitOver: (messages) => (world.autoCommitOver = messages),
    tasks: () => [...world.tasks.values()].map(({ id, session, status }) => ({ id, sessionId: session.id, status })),
    sessions: () =>
      [...world.sessions.values()].map(({ id, live, archives }) => ({
        id,
        live: live.length,
        archives: archives.map((archive) => archive.state),
      })),
  }
}
