import { describe, expect, it } from 'vitest'
import { decodeVector } from '../../src/providers/holographic/codec.js'
import { bundle, similarity } from '../../src/providers/holographic/vectors.js'
import { contents, fixedClock, openFile, openMemory, temporaryPath, withDatabase } from './helpers.js'

describe('adding', () => {
  it('§4: stores a fact once; the first category and tags win', async () => {
    const memory = await openMemory()
    expect(await memory.add('  Alice Smith uses Postgres ', { category: 'project', tags: ['db', 'sql'] })).toEqual({
      id: 1,
      added: true,
    })
    expect(await memory.add('Alice Smith uses Postgres', { category: 'tool' })).toEqual({ id: 1, added: false })
    expect(await memory.list()).toEqual([
      {
        id: 1,
        content: 'Alice Smith uses Postgres',
        category: 'project',
        tags: ['db', 'sql'],
        trust: 0.5,
        entities: ['Alice Smith', 'Postgres'],
      },
    ])
  })

  it.each([
    ['an empty content', ''],
    ['blanks', ' \n '],
    ['a number', 7 as unknown as string],
    ['a document', 'x'.repeat(16_385)],
  ])('§4: %s is a TypeError, and nothing is stored', async (_, content) => {
    const memory = await openMemory()
    await expect(memory.add(content)).rejects.toBeInstanceOf(TypeError)
    expect(await memory.list()).toEqual([])
  })

  it('a NUL or half a character does not cut the text short', async () => {
    const memory = await openMemory()
    await memory.add('before\0after \ud800 end')
    expect(contents(await memory.list())).toEqual(['before after \ufffd end'])
  })

  it('better 5: an alias means the entity, in both directions', async () => {
    const memory = await openMemory()
    await memory.add('Bob lives in Bonn')
    await memory.add('Robert aka Bob likes tea')
    await memory.add('Bob plays chess')
    const all = ['Bob lives in Bonn', 'Bob plays chess', 'Robert aka Bob likes tea']
    expect(contents(await memory.probe('robert')).sort()).toEqual(all)
    expect(contents(await memory.probe('BOB')).sort()).toEqual(all)
    expect(contents(await memory.search('Robert chess'))[0]).toBe('Bob plays chess')
  })

  it('§5: a percent sign or underscore in a name is no wildcard', async () => {
    const memory = await openMemory()
    await memory.add('snake_case is a style')
    await memory.add('snakeXcase is something else')
    expect(contents(await memory.probe('snake_case'))).toEqual(['snake_case is a style'])
    expect(await memory.probe('%')).toEqual([])
  })
})

describe('changing', () => {
  it('§4: an update with new content finds new entities and drops the old ones', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('Alice uses Postgres')
    const updated = await memory.update(id, {
      content: 'Bob uses SQLite',
      category: 'tool',
      tags: ['x'],
      trustDelta: 0.2,
    })
    expect(updated).toEqual({
      id,
      content: 'Bob uses SQLite',
      category: 'tool',
      tags: ['x'],
      trust: 0.7,
      entities: ['Bob', 'SQLite'],
    })
    expect(await memory.probe('Alice')).toEqual([])
    expect(await memory.search('postgres')).toEqual([])
    expect(contents(await memory.search('sqlite', { category: 'tool' }))).toEqual(['Bob uses SQLite'])
    expect(await memory.search('sqlite', { category: 'general' })).toEqual([])
  })

  it('§4: content that another fact has is refused with FACT_EXISTS, and nothing changes', async () => {
    const memory = await openMemory()
    await memory.add('one fact')
    const { id } = await memory.add('another fact')
    await expect(memory.update(id, { content: 'one fact', category: 'tool' })).rejects.toMatchObject({
      code: 'FACT_EXISTS',
    })
    expect((await memory.search('another'))[0]).toMatchObject({ id, category: 'general' })
  })

  it('§4: emptying a fact is a TypeError; an unknown one is NOT_FOUND', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('one fact')
    await expect(memory.update(id, { content: ' ' })).rejects.toBeInstanceOf(TypeError)
    await expect(memory.update(99, { tags: [] })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(memory.feedback(99, 'helpful')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await memory.remove(99)).toBe(false)
  })

  it('§4: feedback moves the trust by 0.05 and 0.10 within 0 and 1; the third “unhelpful” hides a fact', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('Alice likes tea')
    expect((await memory.feedback(id, 'helpful')).trust).toBeCloseTo(0.55)
    expect((await memory.update(id, { trustDelta: -0.05 })).trust).toBeCloseTo(0.5)
    await memory.feedback(id, 'unhelpful')
    await memory.feedback(id, 'unhelpful')
    expect(await memory.search('tea')).toHaveLength(1)
    await memory.feedback(id, 'unhelpful')
    expect(await memory.search('tea')).toEqual([])
    expect(await memory.search('tea', { minTrust: 0 })).toHaveLength(1)
    for (let i = 0; i < 5; i++) await memory.feedback(id, 'unhelpful')
    expect((await memory.update(id, {})).trust).toBe(0)
    await expect(memory.feedback(id, 'meh' as 'helpful')).rejects.toBeInstanceOf(TypeError)
  })

  it('§4: facts are listed by trust, and by category', async () => {
    const memory = await openMemory()
    await memory.add('first', { category: 'tool' })
    const { id } = await memory.add('second')
    await memory.feedback(id, 'helpful')
    expect(contents(await memory.list())).toEqual(['second', 'first'])
    expect(contents(await memory.list({ limit: 1 }))).toEqual(['second'])
    expect(contents(await memory.list({ category: 'tool' }))).toEqual(['first'])
  })

  it('§4: what is removed is gone from every answer', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('Alice Smith uses Postgres')
    expect(await memory.remove(id)).toBe(true)
    const answers = [memory.list(), memory.search('postgres'), memory.probe('Alice Smith'), memory.related('postgres')]
    expect(await Promise.all(answers)).toEqual([[], [], [], []])
  })
})

describe('banks', () => {
  it('better 9: after any changes a bank is the bundle of what its category holds', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64 })
    for (let i = 0; i < 12; i++)
      await memory.add(`Fact ${i} about Topic${i}`, { category: i % 2 === 0 ? 'even' : 'odd' })
    await memory.remove(1)
    await memory.update(3, { content: 'Fact 2 is rewritten' })
    await memory.update(5, { category: 'odd' })
    await memory.add('alone', { category: 'single' })
    await memory.remove(13)
    await memory.close()
    await withDatabase(path, (db) => {
      const vectors = (category: string) =>
        db
          .prepare('SELECT hrr_vector AS v FROM facts WHERE category = ?')
          .all(category)
          .map((row) => decodeVector(row['v'] as Uint8Array, 64)!)
      const banks = db.prepare('SELECT * FROM memory_banks ORDER BY bank_name').all()
      expect(banks.map((bank) => [bank['bank_name'], bank['dim'], bank['fact_count']])).toEqual([
        ['cat:even', 64, 4],
        ['cat:odd', 64, 7],
      ])
      for (const bank of banks) {
        const members = vectors(String(bank['bank_name']).slice(4))
        expect(members).toHaveLength(Number(bank['fact_count']))
        expect(similarity(bundle(members), decodeVector(bank['vector'] as Uint8Array, 64)!)).toBeCloseTo(1, 9)
      }
    })
  })
})

describe('our own writes', () => {
  it('better 9: a bank changes by what was written; the other facts are not read again', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64 })
    for (let i = 0; i < 5; i++) await memory.add(`Fact ${i}`)
    // Behind our back and unnoticed: whoever summed up all vectors now would find one.
    await withDatabase(path, (db) =>
      db.exec('DROP TRIGGER tidemark_vector_changed; UPDATE facts SET hrr_vector = NULL'),
    )
    await memory.add('Fact 5')
    const bank = await withDatabase(path, (db) => db.prepare('SELECT fact_count FROM memory_banks').get())
    expect(bank).toEqual({ fact_count: 6 })
  })

  it('leave no notes for taking up what others wrote', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64 })
    await memory.add('Robert aka Bob likes tea')
    await memory.add('Alice likes tea')
    await memory.update(1, { content: 'Robert likes coffee', category: 'tool' })
    await memory.feedback(1, 'helpful')
    await memory.remove(2)
    expect(await withDatabase(path, (db) => db.prepare('SELECT * FROM tidemark_stale').all())).toEqual([])
  })
})

describe('time', () => {
  it('§7: with a half-life an untouched fact counts half; a touched, a future or a timeless one counts in full', async () => {
    const clock = fixedClock()
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64, clock, halfLifeDays: 10 })
    const { id } = await memory.add('Alice likes tea')
    const score = async (): Promise<number> => (await memory.search('tea'))[0]!.score!
    const fresh = await score()
    clock.nowMs += 10 * 86_400_000
    expect(await score()).toBeCloseTo(fresh / 2, 9)
    await memory.update(id, {})
    expect(await score()).toBeCloseTo(fresh, 9)
    clock.nowMs -= 20 * 86_400_000
    expect(await score()).toBeCloseTo(fresh, 9)
    await withDatabase(path, (db) => db.exec("UPDATE facts SET updated_at = 'once upon a time'"))
    expect(await score()).toBeCloseTo(fresh, 9)
  })

  it('§2: times are written as the reference writes them', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64, clock: fixedClock(Date.UTC(2026, 1, 3, 4, 5, 6, 789)) })
    await memory.add('now')
    expect(await withDatabase(path, (db) => db.prepare('SELECT created_at, updated_at FROM facts').get())).toEqual({
      created_at: '2026-02-03 04:05:06',
      updated_at: '2026-02-03 04:05:06',
    })
  })
})
