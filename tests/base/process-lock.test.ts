import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { acquireProcessLock } from '../../src/base/process-lock.js'
import { temporaryDirectory } from '../support/ledgers.js'

test('a lock is free once it was released, and not before', async () => {
  const path = join(temporaryDirectory(), 'lock.sqlite')
  const lock = await acquireProcessLock(path, 'The store')
  await expect(acquireProcessLock(path, 'The store')).rejects.toMatchObject({
    code: 'LOCKED',
    message: expect.stringContaining(`process ${process.pid}`) as string,
  })
  await lock.release()
  await lock.release()
  await (await acquireProcessLock(path, 'The store')).release()
})

test('a name of the holder that cannot be removed does not keep the lock', async () => {
  const path = join(temporaryDirectory(), 'lock.sqlite')
  const lock = await acquireProcessLock(path, 'The store')
  rmSync(`${path}.holder.json`)
  mkdirSync(`${path}.holder.json`)
  await lock.release()
  await (await acquireProcessLock(path, 'The store')).release()
})
