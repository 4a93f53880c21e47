import type { Logger } from '../../src/base/logger.js'

export interface LogLine {
  readonly level: keyof Logger
  readonly fields: Readonly<Record<string, unknown>>
  readonly message: string
}

/** A logger whose lines a test can read. */
export function recordingLogger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: keyof Logger) => (fields: object, message: string) => {
    lines.push({ level, fields: { ...fields }, message })
  }
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
