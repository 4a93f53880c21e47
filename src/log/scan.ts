import { open, type FileHandle } from 'node:fs/promises'
import { TidemarkError } from '../base/errors.js'
import type { LogPosition } from './append-log.js'
import { decodeLine, peekSeq, type LogRecord } from './line.js'

/** What kind of file this is and the newest version of it that this code reads. */
export interface LogFormat {
  readonly format: string
  readonly version: number
}

export interface Line {
  /** `undefined`: damaged. */
  readonly record: LogRecord | undefined
  /** Length in bytes, with the line feed if there is one. */
  readonly bytes: number
  /** Ends with a line feed; only the last line of a file may not. */
  readonly whole: boolean
}

const LINE_FEED = 0x0a
const CHUNK = 64 * 1024
const FIRST_WINDOW = 4 * 1024

/** Splits on the byte 0x0A only, so U+2028, U+2029 and U+0085 stay inside their line. */
export function* linesOf(bytes: Buffer): Generator<Line> {
  for (let start = 0; start < bytes.length;) {
    const end = bytes.indexOf(LINE_FEED, start)
    const whole = end !== -1
    const stop = whole ? end : bytes.length
    // A record that lacks only its line feed counts: the seal of a torn tail would bring it back anyway.
    const record = decodeLine(bytes.subarray(start, stop))
    const next = whole ? end + 1 : bytes.length
    yield { record, bytes: next - start, whole }
    start = next
  }
}

/** Refuses a file of another kind or of a newer version; a file without a readable first line passes. */
export function checkHeader(record: LogRecord | undefined, expected: LogFormat, path: string): void {
  if (record?.seq !== 0) return
  const { format, version } = record
  if (format !== expected.format) {
    throw new TidemarkError('CORRUPT', `Expected ${path} to be a ${expected.format} file, found ${String(format)}.`)
  }
  if (typeof version !== 'number' || version > expected.version) {
    throw new TidemarkError(
      'FILE_NEWER',
      `${path} was written by a newer tidemark: it has version ${String(version)}, this one reads up to ${expected.version}. Upgrade tidemark.`,
      { details: { path, version, supported: expected.version } },
    )
  }
}

export interface LogPrefix {
  /** The records before the first damage, with the length of each line. */
  readonly records: readonly { readonly record: LogRecord; readonly bytes: number }[]
  readonly header: LogRecord | undefined
  readonly position: LogPosition
  /** The 1-based number of the first damaged line. */
  readonly damagedLine: number | undefined
}

/**
 * Reads a log whose records build on each other: nothing behind the first damage counts. The first line carries no
 * record, so damage there costs nothing but a rewrite, as long as the records behind it start at 1.
 */
export function readPrefix(bytes: Buffer, format: LogFormat, path: string): LogPrefix {
  const records: { record: LogRecord; bytes: number }[] = []
  let header: LogRecord | undefined
  let damagedLine: number | undefined
  let line = 0
  let size = 0
  let torn = false
  for (const { record, bytes: length, whole } of linesOf(bytes)) {
    line += 1
    if (line === 1) {
      checkHeader(record, format, path)
      if (record?.seq === 0) header = record
      else damagedLine = 1
    } else if (record?.seq === records.length + 1) {
      records.push({ record, bytes: length })
    } else {
      damagedLine ??= line
      break
    }
    size += length
    torn = !whole
  }
  if (line === 0) damagedLine = 1
  return { records, header, damagedLine, position: { size, lastSeq: records.length, torn } }
}

/**
 * The lines of a file from the first record behind a cursor on, perhaps with some before it. Found from the end, so it
 * costs what is behind the cursor; read piece by piece, so it takes no more memory than the longest line. The file may
 * grow meanwhile; its end is fixed first.
 */
export async function* readLinesAfter(handle: FileHandle, after: number): AsyncGenerator<Line[]> {
  const { size } = await handle.stat()
  let begun: Buffer[] = []
  for (let at = after > 0 ? await findStart(handle, size, after) : 0; at < size;) {
    const piece = await readAt(handle, at, Math.min(CHUNK, size - at))
    if (piece.length === 0) break
    at += piece.length
    const end = at >= size ? piece.length : piece.lastIndexOf(LINE_FEED) + 1
    if (end === 0) {
      begun.push(piece)
      continue
    }
    const bytes = Buffer.concat([...begun, piece.subarray(0, end)])
    begun = [piece.subarray(end)]
    const lines = [...linesOf(after > 0 ? bytes.subarray(skipUntil(bytes, after)) : bytes)]
    if (lines.length > 0) yield lines
  }
}

/** A line's start, from which on everything behind the cursor is found: at most four times further than it must be. */
async function findStart(handle: FileHandle, size: number, after: number): Promise<number> {
  for (let length = FIRST_WINDOW; length < size; length *= 4) {
    const bytes = await readAt(handle, size - length, Math.min(CHUNK, length))
    // A window that starts inside a line starts at the next one.
    const skip = bytes.indexOf(LINE_FEED) + 1
    if (skip > 0 && startsAtOrBefore(bytes.subarray(skip), after)) return size - length + skip
  }
  return 0
}

/** Passes over lines that claim a number up to the cursor: whether whole or damaged, nobody asks for them. */
function skipUntil(bytes: Buffer, after: number): number {
  let start = 0
  while ((peekSeq(bytes, start) ?? Infinity) <= after) {
    const end = bytes.indexOf(LINE_FEED, start)
    if (end === -1) return bytes.length
    start = end + 1
  }
  return start
}

/** Whether the first readable record is not behind the cursor, so that nothing behind it stands further in front. */
function startsAtOrBefore(bytes: Buffer, after: number): boolean {
  for (const { record } of linesOf(bytes)) if (record !== undefined) return record.seq <= after
  return false
}

/**
 * Where appending to a log of independent records goes on. Damaged lines behind the last readable record keep their
 * numbers, so that a reader's cursor never skips a later record; an unfinished one never had a number.
 */
export async function positionAtEnd(path: string): Promise<LogPosition> {
  const handle = await open(path, 'r')
  try {
    const { size } = await handle.stat()
    let lastSeq = 0
    let torn = false
    for await (const window of windowsFromEnd(handle, size)) {
      const lines = [...linesOf(window)]
      torn = lines.at(-1)?.whole === false
      const known = lines.findLastIndex((line) => line.record !== undefined)
      const damagedBehind = lines.slice(known + 1).filter((each) => each.whole).length
      if (known !== -1) return { size, torn, lastSeq: (lines[known]?.record?.seq ?? 0) + damagedBehind }
      // No readable record at all: the first line was the header.
      lastSeq = Math.max(damagedBehind - 1, 0)
    }
    return { size, torn, lastSeq }
  } finally {
    await handle.close()
  }
}

/** Ever larger stretches from a line's start to the end of the file. */
async function* windowsFromEnd(handle: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let length = FIRST_WINDOW; ; length *= 4) {
    const start = Math.max(size - length, 0)
    const bytes = await readAt(handle, start, size - start)
    // A window that starts inside a line starts at the next one.
    const skip = start === 0 ? 0 : bytes.indexOf(LINE_FEED) + 1
    if (start === 0 || skip > 0) yield bytes.subarray(skip)
    if (start === 0) return
  }
}

async function readAt(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}
