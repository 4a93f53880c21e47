import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { loadSqlite } from '../../src/base/sqlite.js'
import { answer } from '../../src/core/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { startChild } from '../support/child.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { openPowerCutRig } from '../support/power-cut.js'

const CUTS = process.env['TIDEMARK_TEST_ALL'] === '1' ? 20 : 4
const writer = new URL('./children/power-writer.ts', import.meta.url)

function readAcknowledged(path: string): number {
  return existsSync(path) ? Number(readFileSync(path, 'utf8')) : 0
}

/** The count moves on its own; how long that takes does not matter. */
async function untilAcknowledged(path: string, count: number): Promise<number> {
  for (;;) {
    const seen = readAcknowledged(path)
    if (seen >= count) return seen
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

for (const kind of ['xfs', 'ext4'] as const) {
  test(`L10: what was acknowledged survives a power cut on ${kind}, as a prefix without holes`, async (context) => {
    const rig = await openPowerCutRig(context, kind)
    const acknowledgedPath = join(temporaryDirectory(), 'acknowledged')
    const child = startChild(writer, [rig.directory, acknowledgedPath, 'ledger'])
    await child.line((line) => line === 'ready', 'the writer is ready')
    let beyond = 0
    let promised = 0
    for (let cut = 1; cut <= CUTS; cut += 1) {
      promised = await untilAcknowledged(acknowledgedPath, promised + 300)
      const ledger = sqliteLedger({ path: join(await rig.cut(), 'ledger.db') })
      await ledger.open()
      const { result } = await ledger.transact('s', (state) => answer(state, state.generation))
      expect(result, 'an acknowledged turn was lost').toBeGreaterThanOrEqual(promised)
      let expected = 1
      for await (const { generation, messages } of ledger.outbox('s', 1, Infinity)) {
        expect([generation, messages?.slice(0, 20)]).toEqual([expected, `["text ${expected} xxxxxxxxxxxx`.slice(0, 20)])
        expected += 1
      }
      expect(expected - 1).toBe(result)
      beyond += result - promised
      await ledger.close()
    }
    process.stdout.write(
      `${CUTS} power cuts on ${kind}: ${promised} turns acknowledged, 0 lost (${beyond} more were there)\n`,
    )
    child.kill()
    await child.ended
  })
}

test('the control: without syncs a power cut loses what was acknowledged', async (context) => {
  const rig = await openPowerCutRig(context, 'xfs')
  const acknowledgedPath = join(temporaryDirectory(), 'acknowledged')
  const child = startChild(writer, [rig.directory, acknowledgedPath, 'control'])
  await child.line((line) => line === 'ready', 'the writer is ready')
  const promised = await untilAcknowledged(acknowledgedPath, 2_000)
  const found = await rig.cut()
  const { DatabaseSync } = await loadSqlite()
  let kept = 0
  try {
    const db = new DatabaseSync(join(found, 'control.db'))
    kept = Number(db.prepare('SELECT count(*) AS kept FROM rows').get()?.['kept'])
    db.close()
  } catch (error) {
    // Not even the table, or the file, was on the disk.
    expect(error).toMatchObject({ code: 'ERR_SQLITE_ERROR' })
  }
  process.stdout.write(`the control lost ${promised - kept} of ${promised} acknowledged rows\n`)
  expect(kept).toBeLessThan(promised)
  child.kill()
  await child.ended
})
