import { open, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { encodeLine, serialiseFields } from '../../src/log/line.js'
import { checkHeader, positionAtEnd, readLinesAfter, readPrefix } from '../../src/log/scan.js'
import { temporaryDirectory } from '../support/temporary.js'

const format = { format: 'test', version: 1 }
const line = (seq: number, fields: object) => encodeLine(seq, serialiseFields(fields))
const header = line(0, format)

function logText(count: number): string {
  return header + Array.from({ length: count }, (_, n) => line(n + 1, { n: n + 1 })).join('')
}

async function fileWith(text: string | Buffer) {
  const path = join(await temporaryDirectory(), 'log.jsonl')
  await writeFile(path, text)
  return path
}

async function readFrom(path: string, after: number) {
  const handle = await open(path, 'r')
  try {
    const numbers: (number | undefined)[] = []
    let bytes = 0
    for await (const lines of readLinesAfter(handle, after)) {
      numbers.push(...lines.map((each) => each.record?.seq))
      for (const each of lines) bytes += each.bytes
    }
    return { bytes, numbers: numbers.filter((seq) => seq === undefined || seq > after) }
  } finally {
    await handle.close()
  }
}

describe('reading a log', () => {
  test('the prefix before the first damage counts, and the damaged line is named', () => {
    const bytes = Buffer.from(header + line(1, { n: 1 }) + 'rubbish\n' + line(2, { n: 2 }))
    const prefix = readPrefix(bytes, format, 'x')
    expect(prefix.records.map(({ record }) => record.seq)).toEqual([1])
    expect(prefix.damagedLine).toBe(3)
    expect(prefix.position.size).toBe((header + line(1, { n: 1 })).length)
  })

  test('a missing record is damage even if every line is whole', () => {
    const prefix = readPrefix(Buffer.from(header + line(1, { n: 1 }) + line(3, { n: 3 })), format, 'x')
    expect(prefix.records).toHaveLength(1)
    expect(prefix.damagedLine).toBe(3)
  })

  test('a damaged first line costs no record', () => {
    const prefix = readPrefix(
      Buffer.from('{"sum' + logText(2).slice(5, 20) + '\n' + logText(2).slice(header.length)),
      format,
      'x',
    )
    expect(prefix.records).toHaveLength(2)
    expect(prefix.damagedLine).toBe(1)
  })

  test('an empty file is damaged, not an empty log', () => {
    expect(readPrefix(Buffer.alloc(0), format, 'x').damagedLine).toBe(1)
  })

  test('a newer version is refused and says so', () => {
    const newer = Buffer.from(line(0, { format: 'test', version: 2 }))
    expect(() => readPrefix(newer, format, '/some/file')).toThrow(
      expect.objectContaining({ code: 'FILE_NEWER', message: expect.stringContaining('version 2') as string }),
    )
  })

  test('a file of another kind is refused', () => {
    expect(() => checkHeader({ seq: 0, format: 'other', version: 1 }, format, '/some/file')).toThrow(
      expect.objectContaining({ code: 'CORRUPT' }),
    )
  })

  test('reading behind a cursor gives exactly what is behind it, wherever the cursor stands', async () => {
    const path = await fileWith(logText(2_000))
    for (const after of [0, 1, 500, 1_000, 1_950, 1_999, 2_000]) {
      const { numbers } = await readFrom(path, after)
      expect(numbers.filter((seq) => seq !== 0)).toEqual(Array.from({ length: 2_000 - after }, (_, n) => after + n + 1))
    }
  })

  test('reading behind a late cursor starts near the end of the file', async () => {
    const path = await fileWith(logText(20_000))
    const { bytes } = await readFrom(path, 19_990)
    expect((await readFile(path)).length).toBeGreaterThan(500_000)
    expect(bytes).toBeLessThan(10_000)
  })

  test('reading behind an early cursor goes piece by piece, as reading from the start does', async () => {
    const path = await fileWith(logText(20_000))
    const handle = await open(path, 'r')
    let most = 0
    for await (const lines of readLinesAfter(handle, 1)) most = Math.max(most, lines.length)
    await handle.close()
    expect(most).toBeLessThan(3_000)
  })

  test('a line longer than every read is still one line', async () => {
    const long = header + line(1, { text: 'x'.repeat(300_000) }) + line(2, { n: 2 })
    const path = await fileWith(long)
    expect((await readFrom(path, 1)).numbers).toEqual([2])
    expect((await readFrom(path, 0)).numbers).toEqual([1, 2])
    expect((await positionAtEnd(path)).lastSeq).toBe(2)
  })

  test('appending goes on behind the last record', async () => {
    const text = logText(300)
    expect(await positionAtEnd(await fileWith(text))).toEqual({ size: text.length, lastSeq: 300, torn: false })
  })

  test('a torn tail never had a number', async () => {
    const text = logText(3)
    const torn = text.slice(0, -5)
    expect(await positionAtEnd(await fileWith(torn))).toEqual({ size: torn.length, lastSeq: 2, torn: true })
  })

  test('a record that lacks only its line feed counts, so that sealing it cannot bring it back under a number given again', async () => {
    const text = logText(3).slice(0, -1)
    expect(await positionAtEnd(await fileWith(text))).toEqual({ size: text.length, lastSeq: 3, torn: true })
    expect(readPrefix(Buffer.from(text), format, 'x')).toMatchObject({
      damagedLine: undefined,
      position: { size: text.length, lastSeq: 3, torn: true },
    })
  })

  test('a damaged line at the end keeps its number, so that no cursor skips what comes next', async () => {
    const text = logText(3)
    const damaged = text.slice(0, -5) + '#' + text.slice(-4)
    expect(await positionAtEnd(await fileWith(damaged))).toEqual({ size: text.length, lastSeq: 3, torn: false })
  })

  test('a file of rubbish has room for records behind it', async () => {
    expect(await positionAtEnd(await fileWith('rubbish'))).toEqual({ size: 7, lastSeq: 0, torn: true })
    expect(await positionAtEnd(await fileWith(''))).toEqual({ size: 0, lastSeq: 0, torn: false })
  })
})
