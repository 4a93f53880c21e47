import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { entityKey, extractEntities } from '../../src/providers/holographic/entities.js'

describe('names in a text', () => {
  it.each([
    ['Alice Smith uses Postgres', ['Alice Smith', 'Postgres']],
    ['The Postgres server is down', ['Postgres']],
    ['Ludwig van Beethoven lived in Wien', ['Ludwig van Beethoven', 'Wien']],
    ['I use node.js with k8s and snake_case and camelCase', ['node.js', 'k8s', 'snake_case', 'camelCase']],
    ["Peter's favourite editor is Vim", ['Peter', 'Vim']],
    ["O'Brien and Jean-Luc met AT&T", ["O'Brien", 'Jean-Luc', 'AT&T']],
    ['C++ and C# are languages', ['C++', 'C#']],
    ['José García vive en München', ['José García', 'München']],
    ['Иван Петров живёт в Москве', ['Иван Петров', 'Москве']],
    ['Η Μαρία μένει στην Αθήνα', ['Μαρία', 'Αθήνα']],
    ['我住在北京', ['北京']],
    ['我喜欢使用Postgres', ['Postgres']],
    ['私は東京に住んでいます', ['東京']],
    ['저는 서울에서 커피를 마셔요', ['서울', '커피', '마셔요']],
    ['ผมชอบกาแฟที่กรุงเทพ', ['กาแฟ', 'กรุงเทพ']],
    ['محمد يعيش في القاهرة', ['محمد', 'يعيش', 'القاهرة']],
  ])('§5, better 5: in “%s” are %j', (text, names) => {
    expect(extractEntities(text).names).toEqual(names)
  })

  it('§5: quoted text is a name, in the quotes of several languages', () => {
    const text = `"pulp fiction", 'the wire', “la strada”, „das boot“, «война и мир», 「千と千尋」`
    expect(extractEntities(text).names).toEqual([
      'pulp fiction',
      'the wire',
      'la strada',
      'das boot',
      'война и мир',
      '千と千尋',
    ])
  })

  it('§5: apostrophes open and close no quotation', () => {
    expect(extractEntities("it's fine and he's ok").names).toEqual([])
  })

  it('§5: a capitalised phrase inside a quotation is part of it', () => {
    expect(extractEntities('We watched "The Big Lebowski Story" twice').names).toEqual(['The Big Lebowski Story'])
  })

  it.each(['Current Project Status', 'Always use tabs', 'No Smoking', 'I think so', 'Remember this'])(
    '§5: “%s” names nothing',
    (text) => {
      expect(extractEntities(text).names).toEqual([])
    },
  )

  it('§5: names of more than 80 characters or 8 words are none', () => {
    expect(extractEntities(`"${'x'.repeat(81)}"`).names).toEqual([])
    expect(extractEntities('"one two three four five six seven eight nine"').names).toEqual([])
  })

  it('§5, better 5: what is also known as something has an alias, not two entities', () => {
    expect(extractEntities('Robert aka Bob likes tea')).toEqual({
      names: ['Robert'],
      aliases: [{ name: 'Robert', alias: 'Bob' }],
    })
    expect(extractEntities('Kubernetes (also known as k8s) is big').aliases).toEqual([
      { name: 'Kubernetes', alias: 'k8s' },
    ])
    expect(extractEntities('小明又名阿明').aliases).toEqual([{ name: '小明', alias: '阿明' }])
  })

  it('§5: one key for case, accents, hyphens, underscores, dots, blanks and a possessive', () => {
    const keys = ['Node.js', 'node-js', 'NODE_JS', 'node js', "Node.js's"].map(entityKey)
    expect(new Set(keys)).toEqual(new Set(['node js']))
    expect(entityKey('José')).toBe(entityKey('jose'))
    expect(entityKey('Straße')).toBe(entityKey('STRASSE'))
    expect(entityKey('C++')).not.toBe(entityKey('C#'))
  })

  it('finds at most 16 names, none twice, and never fails, whatever the text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
        const { names } = extractEntities(text)
        expect(names.length).toBeLessThanOrEqual(16)
        expect(new Set(names.map(entityKey)).size).toBe(names.length)
      }),
      { numRuns: 300 },
    )
  })

  it.each(['A', 'a-', 'Aa ', 'a.a', 'a_1', 'Ab-c', '"', '“', "'", '« ', '我', 'aka ', 'X aka Y '])(
    'forty thousand characters of “%s” are done long before the time limit of a test',
    (piece) => {
      // A pattern that tries every split would need minutes here.
      expect(extractEntities(piece.repeat(40_000 / piece.length)).names.length).toBeLessThanOrEqual(16)
    },
  )
})
