import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { recordTurn } from '../../src/core/index.js'
import { sqliteLedger } from '../../src/ledger/sqlite/index.js'
import { type Child, startChild } from '../support/child.js'
import { temporaryDirectory } from '../support/ledgers.js'
import { runChild } from './children/run-child.js'

const holder = new URL('./children/holder.ts', import.meta.url)

async function hold(path: string, worker = false): Promise<Child> {
  const child = startChild(holder, [path, String(worker)])
  await child.line((line) => line === 'open', 'the holder has the ledger open')
  return child
}

test.each([false, true])(
  'R3: another process is refused with the pid of the holder; a kill frees the ledger at once (worker: %s)',
  async (worker) => {
    const path = join(temporaryDirectory(), 'ledger.db')
    const child = await hold(path, worker)
    const ledger = sqliteLedger({ path, worker })
    await expect(ledger.open()).rejects.toMatchObject({ code: 'LOCKED', details: { path, pid: child.pid } })
    // Asking again and again must not loosen the holder's lock.
    await expect(ledger.open()).rejects.toMatchObject({ code: 'LOCKED' })
    child.kill()
    await child.ended
    await ledger.open()
    const turn = { owner: 'a', at: 1, turnId: undefined, messages: undefined }
    expect((await ledger.transact('s', (state) => recordTurn(state, turn))).result).toBe(1)
    await ledger.close()
  },
)

test('R3: a holder that is stopped stays the holder', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const child = await hold(path)
  child.kill('SIGSTOP')
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({ code: 'LOCKED', details: { pid: child.pid } })
  child.kill('SIGCONT')
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({ code: 'LOCKED', details: { pid: child.pid } })
})

test('R3: a second ledger in the holder’s own process does not loosen its lock, not even by being refused', async () => {
  const path = join(temporaryDirectory(), 'ledger.db')
  const first = sqliteLedger({ path })
  await first.open()
  await expect(sqliteLedger({ path }).open()).rejects.toMatchObject({ code: 'LOCKED', details: { pid: process.pid } })
  const outsider = await runChild('holder.ts', [path])
  expect(outsider.code).not.toBe(0)
  expect(outsider.stderr).toContain(`is open in process ${process.pid}`)
  await first.close()
  expect(existsSync(`${path}-wal`)).toBe(false)
})
