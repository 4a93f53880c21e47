import { systemClock, type Clock } from '../base/clock.js'
import { silentLogger, type Logger } from '../base/logger.js'
import type { OpenLogFile } from '../log/files.js'
import { RECOVERY_DEFAULTS, type RecoveryLimits } from './recovery-plan.js'
import type { DamageReport, JournalPort } from './types.js'

export interface SessionStoreOptions {
  readonly directory: string
  /** @default a silent logger */
  readonly logger?: Logger
  /** Where runs are journaled; without it an interrupted answer cannot be recovered. */
  readonly journal?: JournalPort
  /** Whether a run that was not begun through this store still works. @default () => false */
  readonly isRunAlive?: (sessionId: string, runId: string) => boolean | Promise<boolean>
  readonly clock?: Clock
  readonly recovery?: Partial<RecoveryLimits>
  /** How many sessions stay in memory; those with unsaved or running work always do. @default 1000 */
  readonly maxLoaded?: number
  /** Called when a transcript was found damaged, beside the log line. */
  readonly onDamage?: (damage: DamageReport) => void
  /** How files are opened: a test makes the disk fail here. */
  readonly openFile?: OpenLogFile
}

export interface StoreSettings {
  readonly directory: string
  readonly logger: Logger
  readonly journal: JournalPort | undefined
  readonly isRunAlive: (sessionId: string, runId: string) => boolean | Promise<boolean>
  readonly clock: Clock
  readonly recovery: RecoveryLimits
  readonly maxLoaded: number
  readonly onDamage: (damage: DamageReport) => void
  readonly openFile: OpenLogFile | undefined
}

/** Fills in what is not given and refuses nonsense. */
export function settingsOf(options: SessionStoreOptions): StoreSettings {
  const { directory, maxLoaded = 1_000 } = options
  if (typeof directory !== 'string' || directory === '') throw new TypeError('Expected directory to be a path.')
  if (!Number.isSafeInteger(maxLoaded) || maxLoaded < 1) {
    throw new TypeError(`Expected maxLoaded to be a whole number of at least 1, found ${maxLoaded}.`)
  }
  const recovery = { ...RECOVERY_DEFAULTS, ...options.recovery }
  for (const [name, value] of Object.entries(recovery)) {
    if (!(value >= 0)) throw new TypeError(`Expected recovery.${name} to be at least 0, found ${String(value)}.`)
  }
  return {
    directory,
    maxLoaded,
    recovery,
    logger: options.logger ?? silentLogger,
    journal: options.journal,
    isRunAlive: options.isRunAlive ?? (() => false),
    clock: options.clock ?? systemClock,
    onDamage: options.onDamage ?? (() => undefined),
    openFile: options.openFile,
  }
}
