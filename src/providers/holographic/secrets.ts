/** What must never become a memory. Rather a fact too few than a key too many. */
const SECRETS = [
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----/u,
  /(?<![A-Za-z0-9])(?:sk|pk|rk)[-_](?:[a-z]{2,10}[-_])?[A-Za-z0-9_-]{16,}/u, // OpenAI, Stripe and their kind
  /(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|npm_|hf_|dop_v1_|shpat_)[A-Za-z0-9_-]{10,}/u,
  /(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{12,}/u, // AWS
  /(?<![A-Za-z0-9])AIza[A-Za-z0-9_-]{30,}/u, // Google
  /(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/u, // JSON web token
  /(?<!\p{L})[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@]{1,200}:[^\s/@]{1,200}@/iu, // password in a URL
  /(?<!\p{L})bearer\s+[A-Za-z0-9._~+/-]{16,}/iu,
]

/** "my password is …", "API_KEY=…": the word, a verb or sign, and a value. */
const NAMED_SECRET = new RegExp(
  [
    String.raw`(?<!\p{L})(?:password|passwd|passphrase|passcode|pwd|secret|api[ _-]?key|access[ _-]?key|private[ _-]?key|client[ _-]?secret`,
    String.raw`(?:auth|access|refresh|api|bot)[ _-]?token|token|credentials?|pin(?:[ _-]?code)?|cvv|cvc|ssn|seed phrase`,
    String.raw`passwort|kennwort|mot de passe|contraseña|clave secreta|senha|parola d'ordine|wachtwoord|hasło|şifre|parola)`,
  ].join('|') +
    String.raw`(?:\s+(?:for|of|to|für|von|pour|de|para)\s+\S{1,60}){0,2}\s*(?:is|was|are|ist|lautet|est|es|é|è|to|[:=]|[-=]>|→)\s*\S`,
  'iu',
)
const NAMED_SECRET_OTHER =
  /(?:парол[ьяю]|код доступа|κωδικός|كلمة السر|كلمة المرور|סיסמ[הא]|पासवर्ड|密码|密碼|口令|密钥|パスワード|暗証番号|비밀번호|암호|รหัสผ่าน)\s*\S{0,12}?\s*(?:[:=：—–-]|это|είναι|هي|هو|היא|है|是|为|は|은|는|คือ)\s*\S/u

/** A word of this length without vowels of a language in it: mixed cases and digits make it a key. */
const RANDOM_WORD = /(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{24,}(?![A-Za-z0-9+/_=-])/gu
const CARD_NUMBER = /(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)/gu

export function holdsSecret(text: string): boolean {
  return (
    SECRETS.some((pattern) => pattern.test(text)) ||
    NAMED_SECRET.test(text) ||
    NAMED_SECRET_OTHER.test(text) ||
    [...text.matchAll(RANDOM_WORD)].some(([word]) => looksRandom(word)) ||
    [...text.matchAll(CARD_NUMBER)].some(([digits]) => passesLuhn(digits.replace(/\D/gu, '')))
  )
}

function looksRandom(word: string): boolean {
  const kinds = [/[a-z]/u, /[A-Z]/u, /\d/u].filter((kind) => kind.test(word)).length
  const digits = word.replace(/\D/gu, '').length
  const isHex = /^[0-9a-f]+$/iu.test(word) && digits >= 4 && word.length >= 32
  return isHex || (kinds === 3 && digits >= 3 && !word.includes('/'))
}

function passesLuhn(digits: string): boolean {
  const sum = Array.from(digits, Number)
    .reverse()
    .reduce((total, digit, i) => total + (i % 2 === 0 ? digit : digit > 4 ? 2 * digit - 9 : 2 * digit), 0)
  return sum % 10 === 0
}
