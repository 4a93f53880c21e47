import { describe, expect, it } from 'vitest'
import { commitOf, contents, openMemory, turn } from './helpers.js'

describe('search', () => {
  it('§7, better 5: hyphenated, dotted and accented terms are found in either spelling', async () => {
    const memory = await openMemory()
    await memory.add('run systemctl daemon-reexec after upgrades')
    await memory.add('the frontend needs Node.js 20')
    await memory.add('Zoë lives in São Paulo')
    expect(contents(await memory.search('daemon-reexec'))).toEqual(['run systemctl daemon-reexec after upgrades'])
    expect(contents(await memory.search('node.js'))).toEqual(['the frontend needs Node.js 20'])
    expect(contents(await memory.search('where does zoe live, sao paulo?'))[0]).toBe('Zoë lives in São Paulo')
  })

  it('a pasted page is as good as its beginning', async () => {
    const memory = await openMemory({ dimensions: 1_024 })
    await memory.add('Alice drinks green tea')
    // Every word of it once cost a vector: this would take minutes.
    const page = Array.from({ length: 500_000 }, (_, n) => `word${n}`).join(' ')
    const question = `What does Alice drink? ${page}`
    for (const found of [
      await memory.search(question),
      await memory.related(`Alice ${page}`),
      await memory.probe(page),
    ]) {
      expect(found.length).toBeLessThanOrEqual(1)
    }
    expect(contents(await memory.search(question))).toEqual(['Alice drinks green tea'])
  })

  it.each([
    ['我住在北京', '北京', '上海'],
    ['我喜欢绿茶', '茶', '酒'],
    ['私はコーヒーが好きです', 'コーヒー', 'ビール'],
    ['저는 서울에서 일해요', '서울', '부산'],
    ['ผมชอบกาแฟเย็น', 'กาแฟ', 'ชา'],
    ['Я живу в Москве', 'москва', 'лондон'],
    ['Μένω στην Αθήνα', 'ΑΘΗΝΑ', 'Πάτρα'],
    ['محمد يعيش في القاهرة', 'القاهرة', 'دبي'],
    ['אני גר בחיפה', 'בחיפה', 'אילת'],
    ['मुझे चाय पसंद है', 'चाय', 'कॉफ़ी'],
    ['Ich mag Weißbier', 'WEISSBIER', 'Rotwein'],
  ])('better 5: “%s” is found by “%s” and not by “%s”', async (fact, query, other) => {
    const memory = await openMemory()
    await memory.add(fact)
    await memory.add('nothing to see here')
    expect(contents(await memory.search(query))).toEqual([fact])
    expect(await memory.search(other)).toEqual([])
  })

  it('a word in another form is found when the exact one is not there', async () => {
    const memory = await openMemory()
    await memory.add('we deploy databases on Friday')
    expect(await memory.search('deployment')).toHaveLength(1)
    expect(await memory.search('database')).toHaveLength(1)
  })

  it('more of the question, and rarer words, rank higher; tags count', async () => {
    const memory = await openMemory({ dimensions: 1024 })
    for (let i = 0; i < 30; i++) await memory.add(`server number ${i} runs linux`)
    await memory.add('server number x runs plan9')
    await memory.add('something else', { tags: ['quokka'] })
    expect(contents(await memory.search('which server runs plan9?'))[0]).toBe('server number x runs plan9')
    expect(contents(await memory.search('quokka'))).toEqual(['something else'])
  })

  it('§7: trust and the least trust, category and limit restrict the answer', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('tea with milk', { category: 'a' })
    await memory.add('tea with lemon', { category: 'b' })
    await memory.update(id, { trustDelta: 0.4 })
    expect(contents(await memory.search('tea'))).toEqual(['tea with milk', 'tea with lemon'])
    expect(contents(await memory.search('tea', { category: 'b' }))).toEqual(['tea with lemon'])
    expect(contents(await memory.search('tea', { minTrust: 0.6 }))).toEqual(['tea with milk'])
    expect(await memory.search('tea', { limit: 1 })).toHaveLength(1)
  })

  it.each(['', '?!', '"', 'AND OR NOT', 'a*b:c^(d) NEAR', "'; DROP TABLE facts; --", '\0', '\ud800'])(
    'the query “%s” is answered and breaks nothing',
    async (query) => {
      const memory = await openMemory()
      await memory.add('tea')
      await expect(memory.search(query)).resolves.toEqual([])
      await expect(memory.recall(query)).resolves.toBe('')
      expect(await memory.search('tea')).toHaveLength(1)
    },
  )

  it.each([0, -1, 1.5, 1_001, Number.NaN, '5' as unknown as number])('a limit of %s is a TypeError', async (limit) => {
    const memory = await openMemory()
    await expect(memory.search('x', { limit })).rejects.toBeInstanceOf(TypeError)
    await expect(memory.list({ limit })).rejects.toBeInstanceOf(TypeError)
  })

  it('a fact whose words are in thousands of others is found by the rare one, in any category', async () => {
    const many = Array.from({ length: 3_000 }, (_, i) => ({
      content: `user likes item ${i}`,
      category: i === 7 ? 'rare' : 'common',
    }))
    const bulk = await openMemory({ dimensions: 16, extract: () => many })
    await bulk.agent('s').commitMemorySession(commitOf('k', [turn(1)]))
    expect(contents(await bulk.search('user likes item 7'))[0]).toBe('user likes item 7')
    expect(contents(await bulk.search('user likes', { category: 'rare' }))).toEqual(['user likes item 7'])
    expect(await bulk.search('user likes')).toHaveLength(10)
  })
})

describe('entities', () => {
  const open = async () => {
    const memory = await openMemory({ dimensions: 1024 })
    for (const fact of [
      'Alice Smith uses Postgres',
      'Alice Smith met Bob Jones in Berlin',
      'Bob Jones likes Postgres',
      'the postgres port is 5432',
      'Carol drives a tram',
    ]) {
      await memory.add(fact)
    }
    return memory
  }

  it('§7, §9: probe gives exactly the facts about the entity, the ones most about it first', async () => {
    const memory = await open()
    expect(contents(await memory.probe('alice smith'))).toEqual([
      'Alice Smith uses Postgres',
      'Alice Smith met Bob Jones in Berlin',
    ])
    expect((await memory.probe('Carol', { limit: 5 }))[0]?.score).toBeGreaterThan(0.35)
  })

  it('§7: probe looks for a name that is no entity in the text', async () => {
    const memory = await open()
    expect(contents(await memory.probe('tram'))).toEqual(['Carol drives a tram'])
    expect(contents(await memory.probe('Smith')).sort()).toEqual([
      'Alice Smith met Bob Jones in Berlin',
      'Alice Smith uses Postgres',
    ])
    expect(await memory.probe('Nobody')).toEqual([])
  })

  it('§7, §9: related gives the facts about it and those that mention it', async () => {
    const memory = await open()
    expect(contents(await memory.related('Postgres')).sort()).toEqual([
      'Alice Smith uses Postgres',
      'Bob Jones likes Postgres',
      'the postgres port is 5432',
    ])
  })

  it('§7, §9: reason gives the facts about all of them', async () => {
    const memory = await open()
    expect(contents(await memory.reason(['Alice Smith', 'Bob Jones']))).toEqual(['Alice Smith met Bob Jones in Berlin'])
    expect(contents(await memory.reason(['Carol', 'tram']))).toEqual(['Carol drives a tram'])
    expect(await memory.reason(['Carol', 'Postgres'])).toEqual([])
    await expect(memory.reason([])).rejects.toBeInstanceOf(TypeError)
    await expect(memory.reason('Carol' as unknown as string[])).rejects.toBeInstanceOf(TypeError)
  })
})

describe('recall', () => {
  it('§7: gives a heading and one line a fact, with the trust to one decimal', async () => {
    const memory = await openMemory()
    const { id } = await memory.add('Alice likes tea\nand ## milk')
    await memory.update(id, { trustDelta: 0.26 })
    expect(await memory.recall('what does Alice like?')).toBe(
      '## Holographic Memory\n- [0.8] Alice likes tea and ## milk',
    )
    expect(await memory.recall('quantum physics')).toBe('')
  })

  it('§7: gives five facts unless asked for more', async () => {
    const memory = await openMemory()
    for (let i = 0; i < 8; i++) await memory.add(`tea number ${i}`)
    expect((await memory.recall('tea')).split('\n')).toHaveLength(6)
    expect((await memory.recall('tea', { limit: 7 })).split('\n')).toHaveLength(8)
  })
})
