import { describe, expect, it } from 'vitest'
import { extractStatements } from '../../src/providers/holographic/extract.js'
import { holdsSecret } from '../../src/providers/holographic/secrets.js'
import { turn, user } from './helpers.js'

const extract = (content: unknown): { content: string; category?: string }[] =>
  extractStatements([turn(1, user(content))])
const stated = (content: unknown): string[] => extract(content).map((fact) => fact.content)

describe('what is stored', () => {
  it('better 3: the statement, not the message around it', () => {
    expect(
      extract('Hi there! I prefer tabs over spaces. Can you fix the build? We decided to ship on Friday!'),
    ).toEqual([
      { content: 'I prefer tabs over spaces', category: 'user_pref' },
      { content: 'We decided to ship on Friday', category: 'project' },
    ])
  })

  it.each([
    'I like green tea',
    "I don't like meetings on Monday",
    'I always run the tests before pushing',
    'I work at Acme as a carpenter',
    "I'm allergic to peanuts",
    'My favorite movie is "Alien"',
    'My dog is called Rex and my wife is Anna',
    'Ich wohne in Köln',
    'Mein Lieblingstee ist Assam',
    'J’habite à Paris',
    'Mon langage préféré est Rust',
    'Prefiero el café solo',
    'Mi editor favorito es Vim',
    'Eu gosto de café',
    'Mi piace il caffè',
    'Ik woon in Utrecht',
    'Wolę herbatę',
    'Kahve seviyorum',
    'Я живу в Москве',
    'Мне нравится зелёный чай',
    'Мене звати Олена',
    'Μένω στην Αθήνα',
    'أنا أعيش في القاهرة',
    'אני גר בחיפה',
    'मुझे चाय पसंद है',
    '我喜欢绿茶',
    '我的生日是三月五日',
    '私は東京に住んでいます',
    '저는 서울에서 일해요',
    'ผมชอบกาแฟ',
  ])('better 3: “%s” is about the speaker', (text) => {
    expect(extract(`${text}.`)).toEqual([{ content: text, category: 'user_pref' }])
  })

  it.each([
    'We decided to use Postgres',
    'The project uses pnpm',
    'Our team requires two reviews',
    'Wir haben uns für Rust entschieden',
    'Nous avons choisi Kotlin',
    'El proyecto usa Docker',
    'Мы решили перейти на Go',
    'Αποφασίσαμε να περιμένουμε',
    'قررنا استخدام بايثون',
    '我们决定使用Rust',
    'プロジェクトはGoを使います',
    'เราตัดสินใจใช้ Go',
  ])('better 3: “%s” is about common work', (text) => {
    expect(extract(text)).toEqual([{ content: text, category: 'project' }])
  })

  it('§8: only what the user said, in strings and in parts of text', () => {
    const parts = [{ type: 'text', text: 'I like tea' }, { type: 'image_url', image_url: 'I like mud' }, null, 7]
    const turns = [
      turn(
        1,
        user(parts),
        { role: 'assistant', content: 'I prefer coffee' },
        { role: 'system', content: 'I like rules' },
      ),
      turn(2, null, 'I like strings', { role: 'user' }, user(7), user('I like tea')),
    ]
    expect(extractStatements(turns).map((fact) => fact.content)).toEqual(['I like tea'])
  })

  it('§8: a summary of an earlier conversation is skipped, and what was said before it is used', () => {
    expect(stated('[CONTEXT COMPACTION — REFERENCE ONLY] I like mud.')).toEqual([])
    expect(stated('I like tea.\n[CONTEXT SUMMARY]: I like mud.')).toEqual(['I like tea'])
  })

  it.each([
    'Do I need a visa?',
    '你喜欢茶吗？ 我喜欢什么？',
    'I want you to fix it',
    'I need help with this',
    'If I use Vim it crashes',
    'hello there',
    `I like ${'very '.repeat(100)}long sentences`,
  ])('“%s” is no statement', (text) => {
    expect(stated(text)).toEqual([])
  })

  it('an abbreviation and a dotted name do not end a sentence', () => {
    expect(stated('The project uses e.g. Node.js and Dr. Smith. Thanks.')).toEqual([
      'The project uses e.g. Node.js and Dr. Smith',
    ])
  })
})

describe('what is skipped', () => {
  it.each([
    ['a fence', '```\nI use vim\n```'],
    ['a fence with a language', '~~~ts\nI use vim\n~~~'],
    ['a fence inside a longer fence', '````\n```\nI use vim\n```\nI use ed\n````'],
    ['a fence that is never closed', 'Look:\n```\nI use vim'],
    ['indented code', 'Look:\n\n    I use vim\n    I use ed'],
    ['tags', '<pre>I use vim</pre> <code class="x">I use ed</code>'],
    ['inline code', 'It printed `I use vim` again'],
  ])('code: %s', (_, text) => {
    expect(stated(text)).toEqual([])
    expect(stated(`I like tea.\n${text}`)).toEqual(['I like tea'])
  })

  it.each([
    '> I love Java',
    'She wrote: "I love Java"',
    'She wrote: “I love Java. I use it daily.”',
    'Er sagte: „Ich liebe Java“',
    'Il a dit : «J’aime Java»',
    '彼は「私はJavaが好き」と言った',
    "He said 'I love Java'",
  ])('quoted text: %s', (text) => {
    expect(stated(text)).toEqual([])
  })

  it('a statement that quotes a title keeps its quotation', () => {
    expect(stated('My favourite film is "I love Java".')).toEqual(['My favourite film is "I love Java"'])
  })

  it.each([
    'my password is hunter2',
    'I use the password: hunter2',
    'I use API_KEY=abc',
    'I use sk-abcdefghijklmnopqrstuvwx for it',
    'I use ghp_abcdefghijklmnop1234 for it',
    'I use AKIAIOSFODNN7EXAMPLE for it',
    'I use eyJhbGciOiJI.eyJzdWIiOiIxMjM0 for it',
    'I use postgres://bob:pw@host/db for work',
    'I like 4111 1111 1111 1111',
    'I use 9f86d081884c7d659a2feaa0c55ad015 for it',
    'I use aB3dE5gH7jK9mN1pQ3sT5vW7 for it',
    'I need -----BEGIN RSA PRIVATE KEY----- here',
    'Mein Passwort lautet geheim, ich mag es',
    'Мой пароль: йцукен',
    '我的密码是hunter2',
    '私のパスワードは秘密です',
  ])('a secret: %s', (text) => {
    expect(holdsSecret(text)).toBe(true)
    expect(stated(text)).toEqual([])
  })

  it.each([
    'My password manager is Bitwarden',
    'I use tokens sparingly',
    'I like https://example.com/a/b?c=d',
    'I use a-very-long-hyphenated-identifier-name here',
    'I drive 12345 miles a year',
    'I use src/components/VeryLongComponentName2024/index3.ts',
  ])('no secret: %s', (text) => {
    expect(holdsSecret(text)).toBe(false)
  })
})

describe('hostile text', () => {
  it.each([
    'I ',
    '"',
    ' ',
    'my ',
    '. ',
    'ich bin ',
    '-',
    'we have ',
    'password for a ',
    '1 ',
    'a://',
    '<pre>',
    '`',
    '我的',
  ])('twenty thousand characters of “%s” are done long before the time limit of a test, and state nothing', (piece) => {
    expect(stated(piece.repeat(20_000 / piece.length))).toEqual([])
  })
})
