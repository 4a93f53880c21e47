import { describe, expect, it } from 'vitest'
import { comparedTerms, indexTerms, jaccard, parts, queryTerms } from '../../src/providers/holographic/words.js'

describe('words', () => {
  it('§7, better 5: compounds are their parts, accents and case make no difference', () => {
    expect(parts('daemon-reexec of Node.js in MÜNCHEN').words).toEqual([
      'daemon',
      'reexec',
      'of',
      'node',
      'js',
      'in',
      'munchen',
    ])
    expect(parts('Ёлка ΣΟΦΟΣ straße').words).toEqual(['елка', 'σοφοσ', 'strasse'])
    expect(parts('C++ and C#').words).toEqual(['cplusplus', 'and', 'csharp'])
  })

  it('better 5: a run without blanks is found by any one, two or three of its Han characters', () => {
    const terms = indexTerms('我住在北京')
    for (const part of ['我', '京', '北京', '住在北', '在北京']) expect(terms).toContain(part)
    expect(terms).not.toContain('我住在北京')
  })

  it('better 5: Thai, Korean and Japanese are cut the same way, in pieces of two and three', () => {
    expect([...indexTerms('กาแฟ')]).toEqual(['กา', 'าแ', 'แฟ', 'กาแ', 'าแฟ'])
    expect(indexTerms('서울에서')).toContain('서울')
    expect(indexTerms('コーヒー')).toContain('ーヒー')
  })

  it('§7: a query loses its idle words, unless it has no others', () => {
    expect(queryTerms('what does the cat like?')).toEqual(['cat', 'like'])
    expect(queryTerms('the who')).toEqual(['the', 'who'])
    expect(queryTerms("don't")).toEqual(['don', 't'])
    expect(queryTerms(' ?! ')).toEqual([])
  })

  it('a pasted page asks for 24 terms at most', () => {
    expect(queryTerms(Array.from({ length: 500 }, (_, i) => `word${i}`).join(' '))).toHaveLength(24)
    expect(queryTerms('漢字'.repeat(300))).toHaveLength(4)
  })

  it('§7: the Jaccard index is shared over all, and 0 if either is empty', () => {
    expect(jaccard(new Set(['a', 'b']), new Set(['b', 'c']))).toBeCloseTo(1 / 3)
    expect(jaccard(new Set(), new Set(['a']))).toBe(0)
    expect(jaccard(new Set(), new Set())).toBe(0)
  })

  it('facts are compared by words, in scripts without blanks by those of a dictionary', () => {
    expect(comparedTerms('Bob 住在北京')).toEqual(['bob', '住在', '北京'])
  })
})
