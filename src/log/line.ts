import { crc32 } from 'node:zlib'

/**
 * One record is one line of JSON: `{"sum":"8 hex digits","seq":7,…}`. The sum is the CRC-32 of everything behind it,
 * so that a flipped byte, a torn write or two lines run together are never mistaken for a record.
 */
export interface LogRecord {
  readonly seq: number
  readonly [field: string]: unknown
}

const HEAD = '{"sum":"'
const SUM_END = HEAD.length + 8
const BODY_START = SUM_END + 2
const SEQ_START = BODY_START + '"seq":'.length
const DIGIT_0 = 0x30
const HEAD_BYTES = Buffer.from(HEAD)

/** Serialises a record's fields, without the braces; `seq` is put in front when the line is written. */
export function serialiseFields(fields: object): string {
  const json = JSON.stringify(fields)
  if (json === '{}') throw new TypeError('A log record needs at least one field, found none.')
  return json.slice(1, -1)
}

export function encodeLine(seq: number, fields: string): string {
  const body = `"seq":${seq},${fields}}`
  return `${HEAD}${hex(crc32(body))}",${body}\n`
}

/** The record of one line (without its line feed), or `undefined` when the line is damaged. */
export function decodeLine(line: Buffer): LogRecord | undefined {
  if (line.length <= BODY_START || HEAD_BYTES.compare(line, 0, HEAD.length) !== 0) return undefined
  const sum = line.toString('latin1', HEAD.length, BODY_START)
  if (sum !== `${hex(crc32(line.subarray(BODY_START)))}",`) return undefined
  try {
    const record = JSON.parse(line.toString('utf8')) as LogRecord
    return Number.isSafeInteger(record.seq) ? record : undefined
  } catch {
    // The checksum holds and the text is no JSON: written by something else, and as unusable as a damaged line.
    return undefined
  }
}

/** The number that a line claims, without checking it; `undefined` where none can be seen. */
export function peekSeq(bytes: Buffer, lineStart: number): number | undefined {
  const start = lineStart + SEQ_START
  let seq = 0
  let at = start
  for (; isDigit(bytes[at]); at++) seq = seq * 10 + (bytes[at] ?? 0) - DIGIT_0
  return at === start ? undefined : seq
}

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= DIGIT_0 && byte < DIGIT_0 + 10

function hex(sum: number): string {
  return sum.toString(16).padStart(8, '0')
}
