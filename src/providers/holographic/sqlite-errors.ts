import { TidemarkError, type TidemarkErrorCode } from '../../base/errors.js'

const PRIMARY = {
  busy: 5,
  locked: 6,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  notADatabase: 26,
}

/** The primary result code of an SQLite error; the extended one has more above its lowest byte. */
function primaryCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return undefined
  return error.errcode & 0xff
}

/** A journal that a crash left behind must be played back first, and a read-only handle cannot do that. */
export function needsWriting(error: unknown): boolean {
  const code = primaryCode(error)
  return code === PRIMARY.readOnly || code === PRIMARY.cannotOpen
}

/** An SQLite error as one of ours. Its own message may quote SQL and never a value; text of facts cannot leak. */
export function asTidemarkError(error: unknown, path: string): unknown {
  const code = primaryCode(error)
  if (code === undefined) return error
  const refuse = (name: TidemarkErrorCode, message: string): TidemarkError =>
    new TidemarkError(name, `${message} (${path})`, { cause: error, details: { path, sqlite: code } })
  switch (code) {
    case PRIMARY.busy:
    case PRIMARY.locked:
      return refuse('LOCKED', 'Another process has kept the holographic database locked for longer than busyTimeoutMs')
    case PRIMARY.corrupt:
    case PRIMARY.notADatabase:
      return refuse(
        'CORRUPT',
        'The holographic database is damaged or no SQLite file; it was left as it is. Restore a copy',
      )
    case PRIMARY.readOnly:
    case PRIMARY.ioError:
    case PRIMARY.full:
    case PRIMARY.cannotOpen:
      return refuse(
        'WRITE_FAILED',
        'The holographic database could not be opened, read or written; check the disk and its rights',
      )
    default:
      return error
  }
}
