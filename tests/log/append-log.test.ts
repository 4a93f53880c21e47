import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { AppendLog, type AppendLogOptions } from '../../src/log/append-log.js'
import { openLogFile, type OpenLogFile } from '../../src/log/files.js'
import { serialiseFields } from '../../src/log/line.js'
import { OpenFiles } from '../../src/log/open-files.js'
import { readPrefix } from '../../src/log/scan.js'
import { diskError, faultyFiles } from '../support/faulty-files.js'
import { temporaryDirectory } from '../support/temporary.js'

const format = { format: 'test', version: 1 }
const fields = (n: number) => serialiseFields({ n })

async function openLog(options: Partial<Pick<AppendLogOptions, 'openFile' | 'syncNames' | 'files' | 'path'>> = {}) {
  const path = options.path ?? join(await temporaryDirectory(), 'log.jsonl')
  const log = new AppendLog({ files: new OpenFiles(), ...options, path, header: format, position: undefined })
  const read = async () => {
    const prefix = readPrefix(await readFile(path), format, path)
    return { values: prefix.records.map(({ record }) => record['n']), damagedLine: prefix.damagedLine }
  }
  return { log, path, read }
}

describe('the append log', () => {
  test('numbers records from 1 in file order, also with many writers at once', async () => {
    const { log, read } = await openLog()
    const numbers = await Promise.all(Array.from({ length: 500 }, (_, n) => log.append(fields(n + 1), n % 7 === 0)))
    expect(numbers).toEqual(Array.from({ length: 500 }, (_, n) => n + 1))
    expect((await read()).values).toEqual(numbers)
    await log.close()
  })

  test('one write and one sync serve everything that arrived together', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { log } = await openLog({ openFile })
    await log.append(fields(0), true)
    calls.length = 0
    await Promise.all(Array.from({ length: 100 }, (_, n) => log.append(fields(n), true)))
    expect(calls).toEqual(['write', 'datasync'])
    await log.close()
  })

  test('a lazy record is written at once and synced only when somebody asks', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    await log.append(fields(2), false)
    expect((await read()).values).toEqual([1, 2])
    expect(calls).not.toContain('datasync')
    expect(log.synced).toBe(false)
    await log.sync()
    expect(calls.filter((call) => call === 'datasync')).toHaveLength(1)
    await log.sync()
    expect(calls.filter((call) => call === 'datasync')).toHaveLength(1)
    expect(log.synced).toBe(true)
    await log.close()
  })

  test('a short write is continued until everything is written', async () => {
    const { openFile } = faultyFiles((call) => (call === 'write' ? 'short' : undefined))
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), true)
    await log.append(fields(2), true)
    expect(await read()).toEqual({ values: [1, 2], damagedLine: undefined })
    await log.close()
  })

  test('a lazy record that the disk takes only in part at once is completed, or taken back if it cannot be', async () => {
    let full = false
    const openFile: OpenLogFile = async (path, flags) => {
      const file = await openLogFile(path, flags)
      return {
        ...file,
        writeNow: (bytes, position) => file.writeNow?.(bytes.subarray(0, 10), position) ?? 0,
        write: (...args) => (full ? Promise.reject(diskError('ENOSPC')) : file.write(...args)),
      }
    }
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    await log.append(fields(2), false)
    full = true
    await expect(log.append(fields(3), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    full = false
    expect(await log.append(fields(4), false)).toBe(3)
    expect(await read()).toEqual({ values: [1, 2, 4], damagedLine: undefined })
    await log.close()
  })

  test('a full disk rejects the write, takes the half line back, and the log goes on without a gap', async () => {
    let full = false
    const { openFile } = faultyFiles((call) => (call === 'write' && full ? diskError('ENOSPC') : undefined))
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    full = true
    await expect(log.append(fields(2), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(log.failures).toBe(1)
    full = false
    expect(await log.append(fields(3), false)).toBe(2)
    expect(await read()).toEqual({ values: [1, 3], damagedLine: undefined })
    await log.close()
  })

  test('a write that breaks off half-way leaves no half line', async () => {
    let failing = false
    const { openFile } = faultyFiles((call, count) => {
      if (call !== 'write' || !failing) return undefined
      return count % 2 === 0 ? 'short' : diskError('EIO')
    })
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    failing = true
    await expect(log.append(fields(2), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    failing = false
    await log.append(fields(3), false)
    expect(await read()).toEqual({ values: [1, 3], damagedLine: undefined })
    await log.close()
  })

  test('a half line that cannot be taken back stops the log until it is written anew', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (failing && call !== 'datasync' ? diskError('EIO') : undefined))
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    failing = true
    await expect(log.append(fields(2), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    failing = false
    await expect(log.append(fields(3), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    await log.replace([{ fields: fields(9) }], true)
    expect((await read()).values).toEqual([9])
    await log.close()
  })

  test('who queued behind a failed write fails with it', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'write' && failing ? diskError('EIO') : undefined))
    const { log } = await openLog({ openFile })
    await log.append(fields(1), false)
    failing = true
    const first = log.append(fields(2), false)
    const second = log.replace([{ fields: fields(3) }], true)
    const outcomes = await Promise.allSettled([first, second])
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'rejected'])
    await log.close()
  })

  test('a failed sync poisons the handle for good: a second sync is never believed', async () => {
    let failing = false
    const { openFile, calls } = faultyFiles((call) => (call === 'datasync' && failing ? diskError('EIO') : undefined))
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), true)
    failing = true
    await expect(log.append(fields(2), true)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    failing = false
    calls.length = 0
    await expect(log.append(fields(3), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    await expect(log.sync()).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect(calls).toEqual([])
    expect(log.poisoned).toBe(true)
    await log.replace([{ fields: fields(1) }, { fields: fields(2) }], false)
    expect(log.poisoned).toBe(false)
    expect(await log.append(fields(3), true)).toBe(3)
    expect((await read()).values).toEqual([1, 2, 3])
    await log.close()
  })

  test('replacing an existing file always syncs it before the old one goes', async () => {
    const { openFile, calls } = faultyFiles(() => undefined)
    const { log, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    calls.length = 0
    await log.replace([{ fields: fields(5) }, { fields: fields(6) }], false)
    expect(calls).toEqual(['write', 'datasync'])
    await log.append(fields(7), false)
    expect((await read()).values).toEqual([5, 6, 7])
    await log.close()
  })

  test('a replacement that fails leaves the old file and no temporary one', async () => {
    let failing = false
    const { openFile } = faultyFiles((call) => (call === 'datasync' && failing ? diskError('EIO') : undefined))
    const { log, path, read } = await openLog({ openFile })
    await log.append(fields(1), false)
    failing = true
    await expect(log.replace([{ fields: fields(2) }], true)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    expect((await read()).values).toEqual([1])
    expect(await readdir(join(path, '..'))).toEqual(['log.jsonl'])
    await log.close()
  })

  test('a new file whose directory could not be synced is not cut to the length of the old one', async () => {
    let failing = false
    const syncNames = () => (failing ? Promise.reject(diskError('EMFILE')) : Promise.resolve())
    const { log, read } = await openLog({ syncNames })
    await log.append(fields(1), true)
    failing = true
    await expect(
      log.replace(
        [1, 2, 3].map((n) => ({ fields: fields(n) })),
        true,
      ),
    ).rejects.toMatchObject({
      code: 'WRITE_FAILED',
    })
    failing = false
    expect(await read()).toEqual({ values: [1, 2, 3], damagedLine: undefined })
    await expect(log.append(fields(4), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    await log.replace(
      [1, 2, 3, 4].map((n) => ({ fields: fields(n) })),
      true,
    )
    expect((await read()).values).toEqual([1, 2, 3, 4])
    await log.close()
  })

  test('a file that cannot be opened for want of descriptors holds no half line: the log goes on', async () => {
    const files = new OpenFiles(1)
    let exhausted = false
    const openFile: OpenLogFile = (path, flags) =>
      exhausted ? Promise.reject(diskError('EMFILE')) : openLogFile(path, flags)
    const { log, read } = await openLog({ files, openFile })
    await log.append(fields(1), false)
    exhausted = true
    await expect(log.append(fields(2), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    exhausted = false
    expect(log.poisoned).toBe(false)
    expect(await log.append(fields(3), false)).toBe(2)
    expect(await read()).toEqual({ values: [1, 3], damagedLine: undefined })
    await log.close()
  })

  test('files are readable by their owner only', async () => {
    const { log, path } = await openLog()
    await log.append(fields(1), false)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await log.close()
  })

  test('closing waits for what was appended; after that nothing is taken', async () => {
    const { log, read } = await openLog()
    const pending = log.append(fields(1), true)
    await log.close()
    expect(await pending).toBe(1)
    await expect(log.append(fields(2), false)).rejects.toMatchObject({ code: 'CLOSED' })
    expect((await read()).values).toEqual([1])
  })

  test('many logs share a bounded number of open files', async () => {
    const directory = await temporaryDirectory()
    const files = new OpenFiles(3)
    const logs = await Promise.all(
      Array.from({ length: 10 }, (_, n) => openLog({ files, path: join(directory, `${n}.jsonl`) })),
    )
    for (let round = 1; round <= 3; round++) {
      for (const { log } of logs) await log.append(fields(round), false)
      expect(files.count).toBeLessThanOrEqual(3)
    }
    for (const { log, read } of logs) {
      expect((await read()).values).toEqual([1, 2, 3])
      await log.close()
    }
    expect(files.count).toBe(0)
  })

  test('after more logs were busy at once than may be open, the others are released', async () => {
    const directory = await temporaryDirectory()
    const files = new OpenFiles(3)
    const logs = await Promise.all(
      Array.from({ length: 10 }, (_, n) => openLog({ files, path: join(directory, `${n}.jsonl`) })),
    )
    for (let round = 1; round <= 2; round++) await Promise.all(logs.map(({ log }) => log.append(fields(round), true)))
    await logs[0]?.log.append(fields(3), false)
    expect(files.count).toBe(3)
    await Promise.all(logs.map(({ log }) => log.close()))
  })

  test('a file that fails when it is closed is the trouble of its own log, not of the one that needed the place', async () => {
    const directory = await temporaryDirectory()
    const files = new OpenFiles(1)
    const openFile: OpenLogFile = async (path, flags) => {
      const file = await openLogFile(path, flags)
      if (flags === 'wx') return file
      return { ...file, close: () => file.close().then(() => Promise.reject(diskError('EIO'))) }
    }
    const failing = await openLog({ files, openFile, path: join(directory, 'a.jsonl') })
    const other = await openLog({ files, path: join(directory, 'b.jsonl') })
    for (const n of [1, 2]) await failing.log.append(fields(n), false)
    for (const n of [1, 2]) expect(await other.log.append(fields(n), false)).toBe(n)
    await expect(failing.log.append(fields(3), false)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
    await failing.log.replace([{ fields: fields(1) }], true)
    await other.log.close()
    await failing.log.close()
  })
})
