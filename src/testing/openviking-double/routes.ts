import type { Handler } from './call.js'
import { ok, WireError, routeMissing, type Answer } from './envelope.js'
import { archive, context, extract } from './reading.js'
import { find, recall, search } from './search.js'
import { add, addBatch, config, create, get, list, remove, used } from './sessions.js'
import { cancel, commit, task, tasks } from './tasks.js'

/** The name of a request kind, as controls and `stats.requests` use it. */
export type Operation =
  | 'create'
  | 'list'
  | 'get'
  | 'config'
  | 'delete'
  | 'add'
  | 'batch'
  | 'used'
  | 'commit'
  | 'extract'
  | 'context'
  | 'archive'
  | 'task'
  | 'tasks'
  | 'cancel'
  | 'find'
  | 'search'
  | 'recall'
  | 'wait'
  | 'status'
  | 'health'
  | 'ready'

interface Route {
  readonly op: Operation
  readonly method: string
  readonly path: RegExp
  readonly handler: Handler
  /** The root key may use it in api_key mode. */
  readonly rootAllowed?: boolean
}

const status: Handler = (call): Answer => ok({ initialized: true, user: call.who.user })

/** Waits for the queues of all users: not a wait for one session. */
const wait: Handler = async (call): Promise<Answer> => {
  const open = (): boolean =>
    [...call.world.tasks.values()].some((each) => each.status === 'pending' || each.status === 'running')
  while (open() && !call.phase2.holding && call.alive()) await new Promise((resolve) => setImmediate(resolve))
  return ok({})
}

const v1 = (path: string): RegExp => new RegExp(`^/api/v1${path.replaceAll('*', '([^/]+)')}$`)

const routes: readonly Route[] = [
  { op: 'create', method: 'POST', path: v1('/sessions'), handler: create },
  { op: 'list', method: 'GET', path: v1('/sessions'), handler: list },
  { op: 'get', method: 'GET', path: v1('/sessions/*'), handler: get },
  { op: 'delete', method: 'DELETE', path: v1('/sessions/*'), handler: remove },
  { op: 'config', method: 'PATCH', path: v1('/sessions/*/config'), handler: config },
  { op: 'add', method: 'POST', path: v1('/sessions/*/messages'), handler: add },
  { op: 'batch', method: 'POST', path: v1('/sessions/*/messages/batch'), handler: addBatch },
  { op: 'used', method: 'POST', path: v1('/sessions/*/used'), handler: used },
  { op: 'commit', method: 'POST', path: v1('/sessions/*/commit'), handler: commit },
  { op: 'extract', method: 'POST', path: v1('/sessions/*/extract'), handler: extract },
  { op: 'context', method: 'GET', path: v1('/sessions/*/context'), handler: context },
  { op: 'archive', method: 'GET', path: v1('/sessions/*/archives/*'), handler: archive },
  { op: 'task', method: 'GET', path: v1('/tasks/*'), handler: task, rootAllowed: true },
  { op: 'tasks', method: 'GET', path: v1('/tasks'), handler: tasks, rootAllowed: true },
  { op: 'cancel', method: 'POST', path: v1('/tasks/*/cancel'), handler: cancel, rootAllowed: true },
  { op: 'find', method: 'POST', path: v1('/search/find'), handler: find },
  { op: 'search', method: 'POST', path: v1('/search/search'), handler: search },
  { op: 'recall', method: 'POST', path: v1('/search/recall'), handler: recall },
  { op: 'status', method: 'GET', path: v1('/system/status'), handler: status, rootAllowed: true },
  { op: 'wait', method: 'POST', path: v1('/system/wait'), handler: wait, rootAllowed: true },
]

export interface Match {
  readonly route: Route
  readonly params: readonly string[]
}

/** Unknown route → 404 without details; a known path with a wrong method → 405 UNKNOWN (`app.py:182-204,527-549`). */
export function matchRoute(method: string, path: string): Match {
  let pathKnown = false
  for (const route of routes) {
    const match = route.path.exec(path)
    if (match === null) continue
    pathKnown = true
    if (route.method === method) return { route, params: match.slice(1).map(decodeURIComponent) }
  }
  if (pathKnown) throw new WireError(405, 'UNKNOWN', 'Method Not Allowed')
  throw routeMissing()
}
