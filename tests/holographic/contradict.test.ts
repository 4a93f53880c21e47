import { describe, expect, it } from 'vitest'
import { openMemory } from './helpers.js'

const conflicts = async (...facts: string[]) => {
  const memory = await openMemory()
  for (const fact of facts) await memory.add(fact)
  return memory.contradict()
}

describe('contradict', () => {
  it.each([
    ['Alice Smith uses Postgres', 'Alice Smith uses MySQL'],
    ['Alice Smith lives in Berlin', 'Alice Smith lives in Munich'],
    ['the staging server of Acme runs on port 8080', 'the staging server of Acme runs on port 9090'],
    ['Bob likes tea', 'Bob hates tea'],
    ['Bob likes tea', 'Bob does not like tea'],
    ['Bob drinks coffee', "Bob doesn't drink coffee"],
    ['DB_HOST = localhost', 'DB_HOST = db.example.com'],
    ["Carol's favourite editor is Vim", "Carol's favourite editor is Visual Studio Code"],
    ['I prefer tabs for indentation', 'I prefer spaces for indentation'],
    ['Ich wohne in Berlin', 'Ich wohne in Hamburg'],
    ['Иван живёт в Москве', 'Иван живёт в Казани'],
    ['Иван любит чай', 'Иван не любит чай'],
    ['我住在北京', '我住在上海'],
    ['我喜欢绿茶', '我不喜欢绿茶'],
    ['我的生日是三月五日', '我的生日是七月八日'],
    ['私は東京に住んでいます', '私は大阪に住んでいます'],
    ['ผมชอบกาแฟ', 'ผมไม่ชอบกาแฟ'],
    ['محمد يعيش في القاهرة', 'محمد يعيش في دبي'],
  ])('§9, better 2: “%s” contradicts “%s”', async (a, b) => {
    const found = await conflicts(a, b, 'Zed plays the flute on Sundays')
    expect(found.map((pair) => [pair.a.content, pair.b.content].sort())).toEqual([[a, b].sort()])
    expect(found[0]!.score).toBeGreaterThanOrEqual(0.5)
    expect(found[0]!.score).toBeLessThanOrEqual(1)
  })

  it.each([
    ['Alice Smith uses Postgres', 'Alice Smith visited Berlin yesterday'],
    ['Alice Smith prefers dark coffee', 'Alice Smith prefers long walks'],
    ['Alice is tired', 'Alice is tall'],
    ['Alice lives in the city', 'Alice works in the bank'],
    ['Postgres runs on port 1', 'MySQL runs on port 1'],
    ['Alice likes tea', 'Alice likes tea very much'],
    ['the sky looks blue', 'the sky looks grey'],
    ['私は東京に住んでいます', '私は車に乗っています'],
    ['我住在北京', '我喜欢绿茶'],
    ['Alice met Bob in Rome', 'Alice taught Bob physics'],
    ['Alice said: see you tomorrow', 'Alice said: bring the big ladder'],
  ])('§9, better 2: “%s” does not contradict “%s”', async (a, b) => {
    expect(await conflicts(a, b)).toEqual([])
  })

  it('§7: names what both are about; fewer than two facts give nothing', async () => {
    expect((await conflicts('Alice Smith uses Postgres', 'Alice Smith uses MySQL'))[0]!.entities).toEqual([
      'Alice Smith',
    ])
    expect((await conflicts('I prefer tabs for code', 'I prefer spaces for code'))[0]!.entities).toEqual([])
    expect(await conflicts('Alice Smith uses Postgres')).toEqual([])
    expect(await conflicts()).toEqual([])
  })

  it('gives the worst first, each pair once, as many as asked for', async () => {
    const memory = await openMemory()
    await memory.add('Bob uses Vim')
    await memory.add('Bob uses Emacs')
    await memory.add('the backup server of Acme starts every night at three')
    await memory.add('the backup server of Acme starts every night at four')
    const all = await memory.contradict()
    expect(all).toHaveLength(2)
    expect(all[0]!.a.content).toContain('Acme')
    expect(await memory.contradict({ limit: 1 })).toEqual(all.slice(0, 1))
  })
})
