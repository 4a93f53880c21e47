import { resolve } from 'node:path'

export interface Config {
  /** Where everything is kept. */
  readonly directory: string
  /** 0 lets the system choose. */
  readonly port: number
  /** How long a shutdown may take; keep it below the patience of whoever sends the signal. */
  readonly deadlineMs: number
  readonly logLevel: string
  readonly openai: { readonly baseUrl: string; readonly apiKey: string | undefined; readonly model: string } | undefined
  readonly openviking: { readonly endpoint: string; readonly apiKey: string | undefined } | undefined
}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

/** Reads the environment; a value that makes no sense is an error that names the variable. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  const { OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, OPENVIKING_URL, OPENVIKING_API_KEY } = env
  const logLevel = env['LOG_LEVEL'] || 'warn'
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new ConfigError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}, but is '${logLevel}'.`)
  }
  return {
    directory: resolve(env['TIDEMARK_DIR'] || '.tidemark'),
    port: readNumber('PORT', env['PORT'], 4747, 65_535),
    deadlineMs: readNumber('SHUTDOWN_DEADLINE_MS', env['SHUTDOWN_DEADLINE_MS'], 8_000, 600_000),
    logLevel,
    openai: OPENAI_BASE_URL
      ? {
          baseUrl: readUrl('OPENAI_BASE_URL', OPENAI_BASE_URL),
          apiKey: OPENAI_API_KEY || undefined,
          model: OPENAI_MODEL || 'gpt-4o-mini',
        }
      : undefined,
    openviking: OPENVIKING_URL
      ? { endpoint: readUrl('OPENVIKING_URL', OPENVIKING_URL), apiKey: OPENVIKING_API_KEY || undefined }
      : undefined,
  }
}

/** Somebody has to change the environment before this can start. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

function readNumber(name: string, text: string | undefined, fallback: number, most: number): number {
  if (text === undefined || text === '') return fallback
  const value = Number(text)
  if (/^\d+$/.test(text) && value <= most) return value
  throw new ConfigError(`${name} must be a whole number from 0 to ${most}, but is '${text}'.`)
}

function readUrl(name: string, text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '')
  throw new ConfigError(`${name} must be a URL that starts with http:// or https://.`)
}
