/** Marks that people leave out when they type: accents of Latin, Greek and Cyrillic, Hebrew points, Arabic vowels. */
const OPTIONAL_MARKS =
  /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]|\u0640/gu

/** One spelling for what a reader takes for the same word. Vowel signs of Indic scripts and Thai stay: they are letters. */
export function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(OPTIONAL_MARKS, '')
    .normalize('NFC')
    .toLowerCase()
    .replaceAll('ß', 'ss')
    .replaceAll('ς', 'σ')
    .replaceAll('’', "'")
}
