import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { similarity, VectorSpace } from '../../src/providers/holographic/vectors.js'
import { decodeVector } from '../../src/providers/holographic/codec.js'
import {
  commitOf,
  contents,
  openFile,
  plainCopy,
  temporaryFolder,
  temporaryPath,
  turn,
  withDatabase,
} from './helpers.js'
import {
  addAsReference,
  createReferenceSchema,
  encodePlainly,
  removeAsReference,
  searchAsReference,
} from './reference.js'

const space = new VectorSpace(64)

/** The file is refused with this code and is, byte for byte, what it was. */
async function expectRefused(path: string, code: string, options = {}): Promise<void> {
  const before = readFileSync(path)
  await expect(openFile(path, options)).rejects.toMatchObject({ name: 'TidemarkError', code })
  expect(readFileSync(path).equals(before)).toBe(true)
}

describe('a new database', () => {
  it('is made with its folders, readable by its owner only', async () => {
    const path = join(temporaryFolder(), 'deep', 'down', 'memory.db')
    const memory = await openFile(path)
    await memory.add('tea')
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(statSync(`${path}-wal`).mode & 0o777).toBe(0o600)
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700)
  })

  it('better 8: keeps a write-ahead log', async () => {
    const path = temporaryPath()
    await openFile(path)
    expect(await withDatabase(path, (db) => db.prepare('PRAGMA journal_mode').get())).toEqual({ journal_mode: 'wal' })
  })

  it('§1: has 1,024 dimensions unless asked for others, and vectors as HRR1 float32', async () => {
    const path = temporaryPath()
    const memory = await openFile(path)
    await memory.add('tea')
    const row = await withDatabase(path, (db) => db.prepare('SELECT hrr_vector FROM facts').get())
    expect((row?.['hrr_vector'] as Uint8Array).byteLength).toBe(4_100)
  })

  it('the vector of a fact is the one of the plain formula', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64 })
    await memory.add('Alice Smith uses Postgres')
    const row = await withDatabase(path, (db) => db.prepare('SELECT hrr_vector FROM facts').get())
    const plain = encodePlainly(space, 'Alice Smith uses Postgres', ['Postgres', 'Alice Smith'])
    expect(similarity(decodeVector(row?.['hrr_vector'] as Uint8Array, 64)!, plain)).toBeCloseTo(1, 9)
  })

  it.each([
    [{ dimensions: 0 }],
    [{ dimensions: 1.5 }],
    [{ dimensions: 70_000 }],
    [{ minTrust: 2 }],
    [{ halfLifeDays: -1 }],
    [{ hrrWeight: Number.NaN }],
    [{ busyTimeoutMs: -1 }],
    [{ extract: 'x' as unknown as () => string[] }],
    [{ path: '' }],
    [{ path: 'a\0b' }],
  ])('§1: %j is a TypeError, and no file is made', async (options) => {
    const path = temporaryPath()
    await expect(openFile(path, options)).rejects.toBeInstanceOf(TypeError)
    expect(existsSync(path)).toBe(false)
  })
})

describe('what is refused, and kept', () => {
  it('better 7: another dimension, with DIMENSION_MISMATCH; left out, the stored one is used', async () => {
    const path = temporaryPath()
    const first = await openFile(path, { dimensions: 64 })
    await first.add('Alice likes tea')
    await first.close()
    await expectRefused(path, 'DIMENSION_MISMATCH', { dimensions: 128 })
    const again = await openFile(path)
    expect(contents(await again.probe('Alice'))).toEqual(['Alice likes tea'])
  })

  it('a format of the future, with FILE_NEWER', async () => {
    const path = temporaryPath()
    await (await openFile(path, { dimensions: 64 })).close()
    await withDatabase(path, (db) => db.exec("UPDATE tidemark_meta SET value = '2' WHERE key = 'format'"))
    await expectRefused(await plainCopy(path), 'FILE_NEWER')
  })

  it('better 8: a file that is no database, with CORRUPT', async () => {
    const path = temporaryPath()
    writeFileSync(path, 'Dear diary, '.repeat(1_000))
    await expectRefused(path, 'CORRUPT')
  })

  it('better 8: a damaged database, wherever the damage is, with CORRUPT', async () => {
    const source = temporaryPath()
    const memory = await openFile(source, { dimensions: 64 })
    for (let i = 0; i < 60; i++) await memory.add(`Fact ${i} is about Topic${i} and more`)
    await memory.close()
    const path = await plainCopy(source)
    const good = readFileSync(path)
    const pages = good.length / 4_096
    let refused = 0
    for (let page = 1; page < pages; page++) {
      // The header of a page: its kind and its cells.
      writeFileSync(
        path,
        Buffer.concat([good.subarray(0, page * 4_096), Buffer.alloc(64, 0xa5), good.subarray(page * 4_096 + 64)]),
      )
      const before = readFileSync(path)
      await openFile(path).then(
        (opened) => opened.close(),
        (error: unknown) => {
          expect(error).toMatchObject({ code: 'CORRUPT' })
          expect(readFileSync(path).equals(before)).toBe(true)
          refused++
        },
      )
      writeFileSync(path, good)
    }
    // Pages of blobs and free pages have no structure that could be wrong.
    expect(refused).toBeGreaterThan(pages / 2)
  })

  it('better 8: a truncated database, with CORRUPT', async () => {
    const source = temporaryPath()
    const memory = await openFile(source, { dimensions: 64 })
    for (let i = 0; i < 60; i++) await memory.add(`Fact ${i}`)
    await memory.close()
    const path = await plainCopy(source)
    truncateSync(path, 3 * 4_096)
    await expectRefused(path, 'CORRUPT')
  })

  it.each([
    ['other tables', 'CREATE TABLE users (id INTEGER)'],
    ['another table of facts', 'CREATE TABLE facts (fact_id INTEGER, body TEXT)'],
    ['another table of entities', 'CREATE TABLE entities (id INTEGER)'],
  ])('a foreign database with %s, with FILE_FOREIGN', async (_, sql) => {
    const path = temporaryPath()
    await withDatabase(path, (db) => db.exec(sql))
    await expectRefused(path, 'FILE_FOREIGN')
  })

  it('a folder in place of the file, with WRITE_FAILED', async () => {
    const path = temporaryPath()
    mkdirSync(path)
    await expect(openFile(path)).rejects.toMatchObject({ code: 'WRITE_FAILED' })
  })

  it('a folder that cannot be made, with WRITE_FAILED', async () => {
    const file = join(temporaryFolder(), 'file')
    writeFileSync(file, '')
    await expect(openFile(join(file, 'memory.db'))).rejects.toMatchObject({ code: 'WRITE_FAILED' })
  })

  it('better 8: a database that somebody keeps locked is LOCKED for writing, and read all the same', async () => {
    const path = temporaryPath()
    const memory = await openFile(path, { dimensions: 64, busyTimeoutMs: 0 })
    await memory.add('tea')
    await withDatabase(path, async (db) => {
      db.exec('BEGIN IMMEDIATE')
      try {
        await expect(memory.add('coffee')).rejects.toMatchObject({ code: 'LOCKED' })
        expect(contents(await memory.search('tea'))).toEqual(['tea'])
      } finally {
        db.exec('ROLLBACK')
      }
    })
    expect(await memory.add('coffee')).toMatchObject({ added: true })
  })
})

describe('two providers of one process on one file', () => {
  it('§3: both read and write what the other wrote, and closing one leaves the other open', async () => {
    const path = temporaryPath()
    const one = await openFile(path, { dimensions: 64, busyTimeoutMs: 0 })
    const two = await openFile(path, { busyTimeoutMs: 0 })
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? one : two).add(`Fact ${i} is about Topic${i}`)),
    )
    expect(await one.list({ limit: 50 })).toHaveLength(20)
    await one.close()
    await two.add('Carol likes tea')
    expect(contents(await two.probe('Carol'))).toEqual(['Carol likes tea'])
    expect(await two.probe('Topic4')).toHaveLength(1)
  })
})

describe('a database of the Python plugin', () => {
  const prepare = async (): Promise<string> => {
    const path = temporaryPath()
    await withDatabase(path, (db) => {
      createReferenceSchema(db)
      addAsReference(db, space, 'Alice Smith uses Postgres', ['Alice Smith'], 'project')
      addAsReference(db, space, 'the port of postgres is 5432')
      addAsReference(db, space, 'Bob Jones met Alice Smith', ['Bob Jones', 'alice smith'])
      db.exec("UPDATE entities SET aliases = 'Bobby, BJ' WHERE name = 'Bob Jones'")
    })
    return path
  }

  it('§2: is opened with its facts, entities and aliases; its dimension is told from its vectors', async () => {
    const path = await prepare()
    await expectRefused(path, 'DIMENSION_MISMATCH', { dimensions: 1024 })
    const memory = await openFile(path)
    expect(await withDatabase(path, (db) => db.prepare('PRAGMA journal_mode').get())).toEqual({ journal_mode: 'wal' })
    expect(contents(await memory.search('postgres port'))[0]).toBe('the port of postgres is 5432')
    expect(contents(await memory.probe('Alice Smith')).sort()).toEqual([
      'Alice Smith uses Postgres',
      'Bob Jones met Alice Smith',
    ])
    expect(contents(await memory.probe('bobby'))).toEqual(['Bob Jones met Alice Smith'])
    expect(contents(await memory.probe('Postgres'))).toEqual(['Alice Smith uses Postgres'])
    expect((await memory.list({ category: 'project' }))[0]).toMatchObject({
      trust: 0.5,
      entities: ['Alice Smith', 'Postgres'],
    })
  })

  it('§6: keeps its vectors as they are and writes new ones in the format it has', async () => {
    const path = await prepare()
    const vectors = () =>
      withDatabase(path, (db) => db.prepare('SELECT hex(hrr_vector) AS v FROM facts ORDER BY fact_id').all())
    const before = await vectors()
    const memory = await openFile(path)
    await memory.add('Carol likes tea')
    await memory.feedback(1, 'helpful')
    const after = await vectors()
    expect(after.slice(0, 3)).toEqual(before)
    expect(String(after[3]?.['v'])).toHaveLength(2 * 8 * 64)
  })

  it('§2: without the column for vectors gets one, and is ranked by words', async () => {
    const path = temporaryPath()
    await withDatabase(path, (db) => {
      createReferenceSchema(db, { vectors: false })
      db.exec("INSERT INTO facts (content) VALUES ('Alice Smith uses Postgres'), ('Alice Smith likes tea')")
    })
    const memory = await openFile(path, { dimensions: 64 })
    expect(contents(await memory.search('who uses postgres'))).toEqual(['Alice Smith uses Postgres'])
    expect(await memory.probe('Alice Smith')).toHaveLength(2)
    await memory.add('Bob uses Postgres')
    expect(await memory.search('postgres')).toHaveLength(2)
  })

  it('with the journal of a crash beside it is rolled back and opened', async () => {
    const path = await plainCopy(await prepare())
    const crashed = temporaryPath()
    await withDatabase(path, (db) => {
      db.exec(
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; UPDATE facts SET tags = hex(zeroblob(20000)), content = 'lost ' || fact_id",
      )
      copyFileSync(path, crashed)
      copyFileSync(`${path}-journal`, `${crashed}-journal`)
      db.exec('ROLLBACK')
    })
    const memory = await openFile(crashed)
    expect(await memory.probe('Alice Smith')).toHaveLength(2)
    expect(await memory.search('lost')).toEqual([])
  })

  it('a vector that cannot be read costs that fact its vector, not the answer', async () => {
    const path = await prepare()
    await withDatabase(path, (db) => db.exec("UPDATE facts SET hrr_vector = x'0102' WHERE fact_id = 3"))
    const memory = await openFile(path)
    expect(await memory.probe('Alice Smith')).toHaveLength(2)
    await memory.update(3, { tags: ['x'] })
    const row = await withDatabase(path, (db) =>
      db.prepare('SELECT hex(hrr_vector) AS v FROM facts WHERE fact_id = 3').get(),
    )
    expect(row).toEqual({ v: '0102' })
  })

  it('stays usable by the plugin: it finds what we wrote and forgets what we removed', async () => {
    const path = await prepare()
    const memory = await openFile(path)
    await memory.add('Carol likes green tea', { tags: ['drinks'] })
    await memory.update(2, { content: 'the port of mysql is 3306' })
    await memory.remove(1)
    await withDatabase(path, (db) => {
      expect(searchAsReference(db, 'tea')).toEqual(['Carol likes green tea'])
      expect(searchAsReference(db, 'drinks')).toEqual(['Carol likes green tea'])
      expect(searchAsReference(db, 'mysql')).toEqual(['the port of mysql is 3306'])
      expect(searchAsReference(db, 'postgres')).toEqual([])
      db.exec("INSERT INTO facts_fts(facts_fts, rank) VALUES ('integrity-check', 1)")
      // The plugin, starting up, makes what is missing, and finds that nothing is.
      db.exec('CREATE TRIGGER IF NOT EXISTS facts_ai AFTER INSERT ON facts BEGIN SELECT 1; END')
      addAsReference(db, space, 'Dora plays chess', ['Dora'])
      expect(searchAsReference(db, 'chess')).toEqual(['Dora plays chess'])
    })
  })

  it('a database that we made has the tables, columns, indexes and triggers of the plugin', async () => {
    const path = temporaryPath()
    await (await openFile(path, { dimensions: 64 })).close()
    const other = temporaryPath()
    await withDatabase(other, createReferenceSchema)
    const shape = (file: string) =>
      withDatabase(file, (db) => ({
        objects: db
          .prepare(
            "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'tidemark%' AND name NOT LIKE 'sqlite_%' ORDER BY type, name",
          )
          .all(),
        columns: ['facts', 'entities', 'fact_entities', 'memory_banks'].map((table) =>
          db
            .prepare(
              'SELECT name, lower(type) AS type, pk, "notnull" AS required, lower(dflt_value) AS fallback FROM pragma_table_info(?)',
            )
            .all(table),
        ),
      }))
    expect(await shape(path)).toEqual(await shape(other))
  })

  it('what the plugin adds, changes and deletes while we are open is found, changed and gone', async () => {
    const path = await prepare()
    const memory = await openFile(path, { extract: () => ['Alice Smith uses Postgres', 'Eve sings'] })
    await memory.add('Carol likes tea', { category: 'project' })
    await withDatabase(path, (db) => {
      addAsReference(db, space, 'Dora plays chess', ['Dora'])
      db.exec("UPDATE facts SET content = 'the port of oracle is 1521' WHERE fact_id = 2")
      removeAsReference(db, 1)
    })
    expect(contents(await memory.probe('Dora'))).toEqual(['Dora plays chess'])
    expect(contents(await memory.search('oracle port'))[0]).toBe('the port of oracle is 1521')
    expect(await memory.search('postgres')).toEqual([])
    // Deleted there is deleted here: it does not come back from a conversation.
    await memory.agent('s').commitMemorySession(commitOf('k1', [turn(1)]))
    expect(contents(await memory.list({ limit: 50 })).sort()).toEqual([
      'Bob Jones met Alice Smith',
      'Carol likes tea',
      'Dora plays chess',
      'Eve sings',
      'the port of oracle is 1521',
    ])
    await memory.add('Frank knits', { category: 'project' })
    const bank = await withDatabase(path, (db) =>
      db.prepare("SELECT fact_count FROM memory_banks WHERE bank_name = 'cat:project'").get(),
    )
    expect(bank).toEqual({ fact_count: 2 })
  })

  it('a fact that the plugin deleted and added again is alive', async () => {
    const path = await prepare()
    const memory = await openFile(path)
    await withDatabase(path, (db) => {
      removeAsReference(db, 1)
      addAsReference(db, space, 'Alice Smith uses Postgres', ['Alice Smith'])
    })
    expect(contents(await memory.search('postgres'))).toContain('Alice Smith uses Postgres')
    const buried = await withDatabase(path, (db) => db.prepare('SELECT count(*) AS n FROM tidemark_deleted').get())
    expect(buried).toEqual({ n: 0 })
  })
})
