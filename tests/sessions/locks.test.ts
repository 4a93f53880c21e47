import { describe, expect, test } from 'vitest'
import { SessionLocks } from '../../src/sessions/session-locks.js'
import { gate } from '../support/gate.js'
import { openStore, user } from './support.js'

describe('session locks', () => {
  test('K1: sections of one session run one after the other, those of others at the same time', async () => {
    const locks = new SessionLocks()
    const order: string[] = []
    const door = gate()
    const first = locks.run('a', async () => {
      order.push('a1 in')
      await door.passed
      order.push('a1 out')
    })
    const second = locks.run('a', () => void order.push('a2'))
    await locks.run('b', () => void order.push('b'))
    door.open()
    await Promise.all([first, second])
    expect(order).toEqual(['a1 in', 'b', 'a1 out', 'a2'])
  })

  test('K1: asking for a lock inside its own section is an error, not a deadlock', async () => {
    const { store } = await openStore()
    await store.create({ id: 'a' })
    await store.update('a', async () => {
      await expect(store.update('a', () => undefined)).rejects.toMatchObject({ code: 'LOCK_REENTERED' })
      await expect(store.lock('a').runExclusive(() => 1)).rejects.toMatchObject({ code: 'LOCK_REENTERED' })
      await expect(store.undoLast('a')).rejects.toMatchObject({ code: 'LOCK_REENTERED' })
    })
  })

  test('K1: also through the section of another session', async () => {
    const locks = new SessionLocks()
    await locks.run('a', () =>
      locks.run('b', async () => {
        await expect(locks.run('a', () => 1)).rejects.toMatchObject({ code: 'LOCK_REENTERED' })
      }),
    )
  })

  test('K1: work started in a section and going on after its end may take the lock', async () => {
    const locks = new SessionLocks()
    const door = gate()
    let later: Promise<number> | undefined
    await locks.run('a', () => {
      later = door.passed.then(() => locks.run('a', () => 7))
    })
    door.open()
    expect(await later).toBe(7)
  })

  test('K1: a failing section gives the lock free', async () => {
    const locks = new SessionLocks()
    await expect(
      locks.run('a', () => {
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(await locks.run('a', () => 1)).toBe(1)
  })

  test('K2: the new id resolves to the same lock from the moment of the rotation', async () => {
    const locks = new SessionLocks()
    const door = gate()
    const order: string[] = []
    const holder = locks.run('old', async () => {
      await door.passed
      order.push('old')
    })
    const alias = locks.alias('old', 'new')
    const waiter = locks.run('new', () => void order.push('new'))
    expect(locks.isLocked('new')).toBe(true)
    door.open()
    await Promise.all([holder, waiter])
    expect(order).toEqual(['old', 'new'])
    alias.done()
  })

  test('K2: also when the old entry was pruned before, and while somebody still waits under the new id', async () => {
    const locks = new SessionLocks()
    await locks.run('old', () => undefined)
    expect(locks.size).toBe(0)
    const alias = locks.alias('old', 'new')
    const door = gate()
    const holder = locks.run('new', () => door.passed)
    alias.done()
    expect(locks.isLocked('old')).toBe(true)
    door.open()
    await holder
    expect(locks.size).toBe(0)
  })

  test('K2: a rotation that fails is undone: the new id has its own lock again', async () => {
    const locks = new SessionLocks()
    const door = gate()
    const holder = locks.run('old', () => door.passed)
    const alias = locks.alias('old', 'new')
    alias.undo()
    expect(locks.isLocked('new')).toBe(false)
    expect(await locks.run('new', () => 1)).toBe(1)
    door.open()
    await holder
    expect(locks.size).toBe(0)
  })

  test('K2: who waits under the new id of a failed rotation still runs alone', async () => {
    const locks = new SessionLocks()
    const door = gate()
    const holder = locks.run('old', () => door.passed)
    const alias = locks.alias('old', 'new')
    const inside = gate()
    let running = 0
    const enter = async () => {
      expect(++running).toBe(1)
      await inside.passed
      running -= 1
    }
    const first = locks.run('new', enter)
    alias.undo()
    const second = locks.run('new', enter)
    door.open()
    inside.open()
    await Promise.all([holder, first, second])
    expect(locks.size).toBe(0)
  })

  test('K2: a new id whose lock is in use is refused', async () => {
    const locks = new SessionLocks()
    const door = gate()
    const holder = locks.run('new', () => door.passed)
    expect(() => locks.alias('old', 'new')).toThrow(expect.objectContaining({ code: 'ROTATION_REFUSED' }))
    door.open()
    await holder
    expect(locks.size).toBe(0)
  })

  test('K2: during a rotation of the store both ids share a lock', async () => {
    const { store } = await openStore()
    await store.create({ id: 'old', messages: [user('x')] })
    const order: string[] = []
    const rotating = store.rotate('old', 'new')
    const update = store.update('new', ({ id }) => void order.push(id))
    await Promise.all([rotating, update])
    // The update waited for the rotation: without the shared lock it would have found no session.
    expect(order).toEqual(['new'])
    expect((await store.get('new'))?.messages).toEqual([user('x')])
  })
})
