import { EventEmitter } from 'eventemitter3'
import type { Logger } from '../base/logger.js'
import type { CoreEvent } from '../core/index.js'
import { describeError } from './describe-error.js'
import type { DrainReport } from './reports.js'

/** A transition of the core as a listener gets it: with its session, without its name. */
type Seen<Type extends CoreEvent['type']> = Readonly<
  { sessionId: string } & Omit<Extract<CoreEvent, { type: Type }>, 'type'>
>

/** Every event with its one readonly, serialisable object: ids, numbers and reasons, never message text. */
export interface LifecycleEvents {
  'turn:recorded': Seen<'turn:recorded'>
  'commit:started': Seen<'commit:started'>
  'commit:accepted': Seen<'commit:accepted'>
  'commit:succeeded': Seen<'commit:succeeded'>
  'commit:failed': Seen<'commit:failed'>
  'commit:abandoned': Seen<'commit:started'>
  'receipt:settled': Seen<'receipt:settled'>
  'receipt:failed': Seen<'receipt:failed'>
  'segment:parked': Seen<'segment:parked'>
  'agent:registered': { readonly sessionId: string; readonly agentId: string }
  'agent:unregistered': { readonly sessionId: string; readonly agentId: string }
  'agent:closed': { readonly agentId: string }
  'session:rotated': Seen<'session:rotated'>
  'session:discarded': Seen<'session:discarded'>
  'session:recovered': {
    readonly sessionId: string
    readonly from: number
    readonly to: number
    readonly segments: number
  }
  'drain:started': { readonly deadlineMs: number }
  'drain:progressed': {
    readonly committed: number
    readonly accepted: number
    readonly failed: number
    readonly parked: number
    /** Sessions that this drain has found and not finished. */
    readonly sessionsLeft: number
  }
  'drain:finished': Omit<DrainReport, 'remaining'> & { readonly remaining: number }
}

export type EventName = keyof LifecycleEvents
/** What it returns is nobody's business, but the rejection of a promise is logged like a throw. */
export type Listener<Name extends EventName> = (event: LifecycleEvents[Name]) => unknown

/** The private emitter: a listener that throws is logged and hurts nobody (V1). */
export class Events {
  readonly #emitter = new EventEmitter()
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    if (typeof listener !== 'function') throw new TypeError(`The listener for '${name}' must be a function.`)
    // Wrapped, so that the same function can listen twice and each subscription ends by itself.
    const wrapped = (event: LifecycleEvents[Name]): unknown => listener(event)
    this.#emitter.on(name, wrapped)
    return () => {
      this.#emitter.off(name, wrapped)
    }
  }

  isHeard(name: EventName): boolean {
    return this.#emitter.listenerCount(name) > 0
  }

  emit<Name extends EventName>(name: Name, event: LifecycleEvents[Name]): void {
    const log = (error: unknown): void =>
      this.#logger.error({ event: name, err: describeError(error) }, 'a listener threw')
    for (const listener of this.#emitter.listeners(name)) {
      try {
        const answer = (listener as Listener<Name>)(event)
        if (answer instanceof Promise) answer.catch(log)
      } catch (error) {
        log(error)
      }
    }
  }

  /** Emits what a transition gave, after it is durable. */
  emitAll(sessionId: string, events: readonly CoreEvent[]): void {
    for (const event of events) {
      if (!this.isHeard(event.type)) continue
      const { type, ...facts } = event
      this.emit(type, { sessionId, ...facts })
    }
  }
}
