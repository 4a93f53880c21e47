import { systemClock, type Clock } from '../../base/clock.js'
import { silentLogger, type Logger } from '../../base/logger.js'
import { extractStatements } from './extract.js'
import type { Extractor } from './types.js'

export interface HolographicOptions {
  /** The database file; missing folders are made. `:memory:` keeps nothing. */
  readonly path: string
  /** Length of the vectors. Stored with the database: another one is refused. @default what the database has, else 1024 */
  readonly dimensions?: number
  /** Turns into facts, instead of the built-in rules. @default extractStatements */
  readonly extract?: Extractor
  /** Facts below this trust are neither searched nor recalled. @default 0.3 */
  readonly minTrust?: number
  /** Trust of a new fact. @default 0.5 */
  readonly defaultTrust?: number
  /** Days after which a fact that nobody touched counts half; 0 = never. @default 0 */
  readonly halfLifeDays?: number
  /** Share of the vectors in the score of a search, 0 to 1; the rest is words. @default 0.3 */
  readonly hrrWeight?: number
  /** How long a write waits for another process. @default 10000 */
  readonly busyTimeoutMs?: number
  /** @default systemClock */
  readonly clock?: Clock
  /** Never gets text of a fact. @default silent */
  readonly logger?: Logger
}

export type Settings = Required<Omit<HolographicOptions, 'dimensions'>> & { readonly dimensions: number | undefined }

const LARGEST_DIMENSION = 65_536

export function settle(options: HolographicOptions): Settings {
  const settings: Settings = Object.freeze({
    path: options.path,
    dimensions: options.dimensions,
    extract: options.extract ?? extractStatements,
    minTrust: options.minTrust ?? 0.3,
    defaultTrust: options.defaultTrust ?? 0.5,
    halfLifeDays: options.halfLifeDays ?? 0,
    hrrWeight: options.hrrWeight ?? 0.3,
    busyTimeoutMs: options.busyTimeoutMs ?? 10_000,
    clock: options.clock ?? systemClock,
    logger: options.logger ?? silentLogger,
  })
  const { path, dimensions, extract } = settings
  if (typeof path !== 'string' || path === '' || path.includes('\0')) {
    throw new TypeError('HolographicProvider.open: path must be the name of a file (or :memory:)')
  }
  if (dimensions !== undefined) requireRange('dimensions', dimensions, 1, LARGEST_DIMENSION, true)
  if (typeof extract !== 'function') throw new TypeError('HolographicProvider.open: extract must be a function')
  requireRange('minTrust', settings.minTrust, 0, 1)
  requireRange('defaultTrust', settings.defaultTrust, 0, 1)
  requireRange('halfLifeDays', settings.halfLifeDays, 0, Number.MAX_VALUE)
  requireRange('hrrWeight', settings.hrrWeight, 0, 1)
  requireRange('busyTimeoutMs', settings.busyTimeoutMs, 0, 2 ** 31 - 1, true)
  return settings
}

/** The door for numbers, of options and of calls. */
export function requireRange(name: string, value: unknown, least: number, most: number, whole = false): void {
  const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))
  if (fits) return
  const limit = most === Number.MAX_VALUE ? `at least ${least}` : `from ${least} to ${most}`
  throw new TypeError(`${name} must be a ${whole ? 'whole ' : ''}number ${limit}, got ${String(value)}`)
}
