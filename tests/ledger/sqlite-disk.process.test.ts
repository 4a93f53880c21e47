import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordTurn } from '../../src/core/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { buildFsyncShim } from '../support/fsync-shim.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { missingTool } from '../support/tools.js'
import { runChild } from './children/run-child.js'

const withoutCompiler = missingTool({ commands: ['cc'] })

test.skipIf(withoutCompiler)(
  'L10: whichever sync fails, nothing acknowledged is lost and the next call goes on',
  async () => {
    const directory = temporaryDirectory()
    const shim = buildFsyncShim(directory, directory)
    const child = await runChild('fsync-failure.ts', [directory, shim.controlPath, 'false', '1'], shim.env)
    expect(child.stderr).toBe('')
    const { runs, failures } = JSON.parse(child.stdout) as { runs: number; failures: number }
    process.stdout.write(
      `fsync: ${runs} runs with one failing sync each, ${failures} calls were refused and repeated\n`,
    )
    expect(runs).toBeGreaterThan(20)
    expect(failures).toBeGreaterThan(15)
  },
)

test.skipIf(withoutCompiler)('L10: the same on a thread of its own', async () => {
  const directory = temporaryDirectory()
  const shim = buildFsyncShim(directory, directory)
  const step = process.env['TIDEMARK_TEST_ALL'] === '1' ? '1' : '5'
  const child = await runChild('fsync-failure.ts', [directory, shim.controlPath, 'true', step], shim.env)
  expect(child.stderr).toBe('')
  expect((JSON.parse(child.stdout) as { failures: number }).failures).toBeGreaterThan(2)
})

test.skipIf(withoutCompiler)('whichever read fails while the file is opened, it is not taken for damaged', async () => {
  const directory = temporaryDirectory()
  const shim = buildFsyncShim(directory, 'ledger.db')
  const child = await runChild('read-failure.ts', [directory, shim.controlPath], shim.env)
  expect(child.stderr).toBe('')
  const { runs, refused } = JSON.parse(child.stdout) as { runs: number; refused: number }
  process.stdout.write(
    `reads: ${runs} openings with one failing read each, ${refused} refused, the file always there\n`,
  )
  expect(refused).toBeGreaterThan(20)
})

const withoutMount = missingTool({ root: true, commands: ['mount', 'umount'] })

/** A file system in memory that is soon full. */
function mountSmall(): { directory: string; unmount: () => void } {
  const directory = join(temporaryDirectory(), 'small')
  mkdirSync(directory)
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=768k', 'tmpfs', directory])
  return { directory, unmount: () => void execFileSync('umount', ['-l', directory]) }
}

const mark = async (ledger: ReturnType<typeof sqliteLedger>, index: number): Promise<number> => {
  const messages = JSON.stringify(['x'.repeat(8_000)])
  const turn = { owner: 'agent', at: index, turnId: `turn-${index}`, messages }
  return (await ledger.transact('s', (state) => recordTurn(state, turn))).result
}

test.skipIf(withoutMount)(
  'a full disk refuses marks with LEDGER_FAILED, loses none, and goes on when there is room',
  async () => {
    const { directory, unmount } = mountSmall()
    const ballast = join(directory, 'ballast')
    writeFileSync(ballast, Buffer.alloc(256 * 1024))
    const path = join(directory, 'ledger.db')
    const ledger = sqliteLedger({ path })
    try {
      await ledger.open()
      let acknowledged = 0
      let refusal: unknown
      while (refusal === undefined && acknowledged < 500) {
        try {
          acknowledged = await mark(ledger, acknowledged + 1)
        } catch (error) {
          refusal = error
        }
      }
      expect(refusal).toMatchObject({ code: 'LEDGER_FAILED', details: { path } })
      expect(ledger.health()).toMatchObject({ status: 'unhealthy' })
      expect(acknowledged).toBeGreaterThan(0)
      rmSync(ballast)
      const next = await mark(ledger, acknowledged + 1)
      expect(next).toBe(acknowledged + 1)
      expect(ledger.health()).toEqual({ status: 'ok' })
      const generations: number[] = []
      for await (const { generation } of ledger.outbox('s', 1, Infinity)) generations.push(generation)
      expect(generations).toEqual(Array.from({ length: next }, (_, index) => index + 1))
    } finally {
      await ledger.close()
      unmount()
    }
  },
)

test.skipIf(withoutMount)(
  'a read-only disk is refused with the reason, and used as soon as it can be written',
  async () => {
    const { directory, unmount } = mountSmall()
    const view = join(temporaryDirectory(), 'view')
    mkdirSync(view)
    execFileSync('mount', ['--bind', directory, view])
    try {
      const before = sqliteLedger({ path: join(directory, 'ledger.db') })
      await before.open()
      expect(await mark(before, 1)).toBe(1)
      await before.close()
      execFileSync('mount', ['-o', 'remount,ro,bind', view])
      const ledger = sqliteLedger({ path: join(view, 'ledger.db') })
      await expect(ledger.open()).rejects.toMatchObject({
        code: 'LEDGER_FAILED',
        details: { path: join(view, 'ledger.db') },
      })
      expect(ledger.health()).toMatchObject({ status: 'unhealthy' })
      execFileSync('mount', ['-o', 'remount,rw,bind', view])
      expect(await mark(ledger, 2)).toBe(2)
      expect(ledger.health()).toEqual({ status: 'ok' })
      await ledger.close()
    } finally {
      execFileSync('umount', ['-l', view])
      unmount()
    }
  },
)
