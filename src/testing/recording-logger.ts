import type { Logger } from '../base/logger.js'

export interface RecordingLogger extends Logger {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[]
  /** Everything that was logged, as one text. */
  text(): string
}

export function recordingLogger(): RecordingLogger {
  const lines: RecordingLogger['lines'] = []
  const at =
    (level: string) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields, message })
    }
  return {
    lines,
    text: () => lines.map((line) => JSON.stringify(line)).join('\n'),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
  }
}
