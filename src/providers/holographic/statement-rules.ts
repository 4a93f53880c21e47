/** Which sentences are worth keeping, by language. `user_pref`: about the speaker. `project`: about common work. */
export interface StatementRule {
  readonly category: 'user_pref' | 'project' | 'general'
  readonly pattern: RegExp
}

// JavaScript's \b knows ASCII only.
const word = (inner: string): RegExp => new RegExp(String.raw`(?<![\p{L}\p{N}])(?:${inner})(?![\p{L}\p{N}])`, 'iu')
const start = (inner: string): RegExp => new RegExp(String.raw`(?:${inner})`, 'u')

const ADVERBS = String.raw`(?:(?:do|did|don['’]t|do not|didn['’]t|really|also|still|mostly|mainly|usually|often|always|never|now|only|just|personally|currently|generally|much|would|strongly|particularly|['’]d)\s+){0,3}`
const ATTRIBUTES =
  'name|nickname|birthday|wife|husband|partner|girlfriend|boyfriend|son|daughter|brother|sister|mother|father|dog|cat|job|role|title|company|employer|boss|manager|time ?zone|language|native language|hometown|city|country|pronouns|hobby|editor|goal|diet'

const PREFERENCES = [
  // English
  word(
    String.raw`I(?:['’]d)?\s+${ADVERBS}(?:prefer|like|love|enjoy|hate|dislike|use|want|need|live|work|speak|own|drive|study|play|eat|drink|wear|read|write in|grew up|moved|was born|go by|avoid)\s+\S.*`,
  ),
  word(String.raw`I\s+(?:always|never|usually)\s+\S.*`),
  word(
    String.raw`I(?:\s+am|['’]m)\s+(?:an?|from|based|living|working (?:at|for|as|in)|allergic|vegetarian|vegan|married|located|called|named|born|fluent|interested in|\d+ years)(?:\s+.*)?`,
  ),
  word(String.raw`I\s+have\s+(?:an?|two|three|four|\d+)\s+\S.*`),
  word(String.raw`my\s+(?:favou?rite|preferred|default|usual)\s+(?:\S+\s+){1,4}(?:is|are)\s+\S.*`),
  word(String.raw`my\s+(?:\S+\s+)?(?:${ATTRIBUTES})(?:['’]s\s+\S+)?\s+(?:is|are)\s+\S.*`),
  word(String.raw`(?:please\s+)?call me\s+\S.*`),
  // German
  word(
    String.raw`ich\s+(?:(?:wirklich|auch|meistens|immer|nie|normalerweise|am liebsten)\s+)?(?:bevorzuge|mag|liebe|hasse|benutze|verwende|nutze|brauche|möchte|will|trinke|esse|wohne|lebe|arbeite|heiße|spreche|lerne|spiele)\s+\S.*`,
  ),
  word(String.raw`ich\s+bin\s+(?:ein|eine|aus|allergisch|vegetarier\p{L}*|veganer\p{L}*|verheiratet)(?:\s+.*)?`),
  word(String.raw`(?:mein|meine)\s+(?:\S+\s+){1,3}(?:ist|sind|heißt|heißen)\s+\S.*`),
  // French
  word(
    String.raw`(?:je\s+(?:(?:n['’]|ne\s+))?(?:préfère|veux|déteste|vis|travaille|parle|bois|mange|joue|m['’]appelle)|j['’](?:aime|adore|utilise|habite|ai besoin)|je\s+n['’](?:aime|utilise))\s+\S.*`,
  ),
  word(String.raw`je\s+suis\s+(?:une?|allergique|végétarien\p{L}*|végan\p{L}*|marié\p{L}*|originaire)(?:\s+.*)?`),
  word(String.raw`(?:mon|ma|mes)\s+(?:\S+\s+){1,3}(?:est|sont|s['’]appelle)\s+\S.*`),
  // Spanish
  word(
    String.raw`(?:yo\s+)?(?:no\s+)?(?:prefiero|me\s+gustan?|me\s+encantan?|uso|utilizo|quiero|necesito|odio|vivo\s+en|trabajo\s+(?:en|como|para)|me\s+llamo|hablo|siempre\s+uso|nunca\s+uso)\s+\S.*`,
  ),
  word(String.raw`(?:mi|mis)\s+(?:\S+\s+){1,3}(?:es|son|se\s+llama)\s+\S.*`),
  // Portuguese, Italian, Dutch, Polish, Turkish
  word(
    String.raw`(?:eu\s+)?(?:não\s+)?(?:prefiro|gosto\s+d\p{L}+|adoro|utilizo|quero|preciso|odeio|moro\s+\p{L}+|trabalho\s+\p{L}+|me\s+chamo|meu\s+nome\s+é)\s+\S.*`,
  ),
  word(
    String.raw`(?:io\s+)?(?:non\s+)?(?:preferisco|mi\s+piac\p{L}+|amo|utilizzo|voglio|ho\s+bisogno|odio|vivo\s+\p{L}+|abito\s+\p{L}+|lavoro\s+\p{L}+|mi\s+chiamo)\s+\S.*`,
  ),
  word(String.raw`ik\s+(?:gebruik|hou\s+van|haat|wil|woon|werk|heet|drink|eet|spreek|verkies)\s+\S.*`),
  word(String.raw`(?:ja\s+)?(?:nie\s+)?(?:wolę|lubię|kocham|używam|potrzebuję|mieszkam|pracuję|nazywam\s+się)\s+\S.*`),
  word(
    String.raw`\S.*\s(?:tercih\s+ediyorum|tercih\s+ederim|seviyorum|severim|kullanıyorum|istiyorum|yaşıyorum|çalışıyorum)`,
  ),
  // Russian, Ukrainian, Greek
  word(
    String.raw`я\s+(?:(?:не|очень|всегда|никогда|обычно|тоже|больше)\s+){0,2}(?:предпочитаю|люблю|использую|пользуюсь|хочу|ненавижу|живу|работаю|говорю|пью|ем|играю|учу)\s+\S.*`,
  ),
  word(
    String.raw`мне\s+(?:(?:не|очень|больше)\s+){0,2}(?:нравится|нравятся|нужен|нужна|нужно|нужны)\s+\S.*|меня\s+зовут\s+\S.*|мо(?:й|я|ё|е|и)\s+(?:\S+\s+){1,3}[—–-]\s*\S.*`,
  ),
  word(
    String.raw`я\s+(?:(?:не|дуже|завжди|ніколи)\s+){0,2}(?:надаю перевагу|люблю|використовую|хочу|живу|працюю|віддаю перевагу)\s+\S.*|мені\s+(?:не\s+)?подоба\p{L}+\s+\S.*|мене\s+звати\s+\S.*`,
  ),
  word(
    String.raw`(?:(?:εγώ|δεν|πάντα)\s+){0,2}(?:προτιμώ|μου\s+αρέσ\p{L}+|αγαπώ|λατρεύω|χρησιμοποιώ|θέλω|χρειάζομαι|μισώ|μένω|ζω|δουλεύω|με\s+λένε)\s+\S.*`,
  ),
  // Arabic, Hebrew, Hindi
  word(String.raw`(?:أنا\s+)?(?:لا\s+)?(?:أفضل|أفضّل|أحب|أستخدم|أريد|أحتاج|أكره|أعيش|أسكن|أعمل|أتحدث|اسمي)\s+\S.*`),
  word(String.raw`אני\s+(?:לא\s+)?(?:מעדיפ?ה?ף?|אוהבת?|משתמשת?|רוצה|צריכה?|צריך|שונאת?|גרה?|עובדת?)\s+\S.*|שמי\s+\S.*`),
  start(
    String.raw`(?:मुझे|मैं|मैंने).+(?:पसंद|चाहिए|करता|करती|रहता|रहती|उपयोग|इस्तेमाल|पीता|पीती|खाता|खाती)|(?:मेरा|मेरी|मेरे)\s.+\s(?:है|हैं)`,
  ),
  // Chinese, Japanese, Korean, Thai
  start(
    '我(?:真的|平时|平時|一直|总是|總是|从不|從不|从来不|通常|比较|比較|最|更|很|也|都|不|非常){0,3}(?:喜欢|喜歡|偏好|爱|愛|使用|用|想要|需要|讨厌|討厭|住在|来自|來自|叫|习惯|習慣|在.{1,20}工作).|我的.{1,12}(?:是|叫).',
  ),
  start(
    '(?:私|僕|俺|わたし|ぼく|自分)(?:は|の|も|が).+|.+(?:が好き|が大好き|が嫌い|を使っています|を使ってい|を愛用|に住んでい|で働いてい|が必要)',
  ),
  start(
    '(?:저는|나는|제가|내가|저의|나의|제|내)\\s.+|.+(?:좋아해|좋아합니다|선호합니다|선호해|싫어해|싫어합니다|사용합니다|사용해요)',
  ),
  start('(?:ผม|ฉัน|ดิฉัน|หนู|เรา)(?:ไม่|มัก|มักจะ|ก็)?(?:ชอบ|รัก|ใช้|ต้องการ|อยากได้|เกลียด|อาศัยอยู่|อยู่ที่|ทำงาน|ชื่อ|พูด|แพ้).'),
]

const DECISIONS = [
  word(
    String.raw`we(?:['’]ve|\s+have)?\s+(?:(?:just|all|finally|already)\s+)?(?:decided|agreed|chose|chosen|settled|went with|picked|will use|use|switched|moved|standardi[sz]ed)\s+\S.*`,
  ),
  word(
    String.raw`(?:the|this|our)\s+(?:project|team|app|application|service|repo|repository|codebase|company|product|stack|backend|frontend|database)(?:\s+\S+)?\s+(?:uses|needs|requires|runs|depends on|is written in|is built|is hosted|is deployed|must|targets)\s+\S.*`,
  ),
  word(
    String.raw`wir\s+(?:haben\s+.*(?:entschieden|beschlossen|vereinbart|gewählt)|verwenden\s+\S.*|nutzen\s+\S.*|benutzen\s+\S.*)|(?:das|unser)\s+projekt\s+(?:verwendet|nutzt|benutzt|braucht|benötigt|erfordert)\s+\S.*`,
  ),
  word(
    String.raw`(?:nous\s+avons|on\s+a)\s+(?:décidé|convenu|choisi|opté)\s+\S.*|(?:le|notre)\s+projet\s+(?:utilise|nécessite|exige|requiert|a\s+besoin)\s+\S.*`,
  ),
  word(
    String.raw`(?:hemos\s+)?(?:decidimos|acordamos|elegimos|decidido|acordado|elegido)\s+\S.*|(?:el|nuestro)\s+proyecto\s+(?:usa|utiliza|necesita|requiere)\s+\S.*`,
  ),
  word(
    String.raw`(?:nós\s+)?(?:decidimos|combinamos|escolhemos)\s+\S.*|(?:o|nosso)\s+projeto\s+(?:usa|utiliza|precisa|requer)\s+\S.*`,
  ),
  word(
    String.raw`abbiamo\s+(?:deciso|scelto|concordato)\s+\S.*|il\s+(?:nostro\s+)?progetto\s+(?:usa|utilizza|richiede)\s+\S.*`,
  ),
  word(
    String.raw`мы\s+(?:решили|договорились|выбрали|используем)\s+\S.*|(?:наш\s+)?проект\s+(?:использует|требует)\s+\S.*|ми\s+(?:вирішили|домовилися|обрали|використовуємо)\s+\S.*`,
  ),
  word(String.raw`(?:αποφασίσαμε|συμφωνήσαμε|επιλέξαμε)\s+\S.*|το\s+έργο\s+(?:χρησιμοποιεί|χρειάζεται|απαιτεί)\s+\S.*`),
  word(
    String.raw`(?:قررنا|اتفقنا|اخترنا)\s+\S.*|المشروع\s+(?:يستخدم|يحتاج|يتطلب)\s+\S.*|(?:החלטנו|הסכמנו|בחרנו)\s+\S.*|הפרויקט\s+(?:משתמש|דורש|צריך)\s+\S.*`,
  ),
  start('हमने\\s.+(?:फैसला|निर्णय|तय|चुना)|(?:परियोजना|प्रोजेक्ट)\\s.+(?:उपयोग|इस्तेमाल|ज़रूरत|चाहिए)'),
  start(
    '我们(?:已经|一致)?(?:决定|同意|选择|选用|采用|约定).|我們(?:已經|一致)?(?:決定|同意|選擇|採用).|(?:项目|專案|项目组)(?:使用|需要|要求|采用|採用|用).',
  ),
  start(
    '.+(?:に決めました|に決めた|ことにした|ことにしました|に合意しました|を選びました|を採用しました)|プロジェクト(?:は|では).+(?:使|必要)',
  ),
  start('우리(?:는|가)?\\s.+(?:결정|합의|선택|사용)|프로젝트(?:는|에서는)?\\s.+(?:사용|필요)'),
  start('เรา(?:ได้)?(?:ตัดสินใจ|ตกลง|เลือก).|โครงการ(?:นี้)?(?:ใช้|ต้องการ).'),
]

export const STATEMENT_RULES: readonly StatementRule[] = [
  ...PREFERENCES.map((pattern) => ({ category: 'user_pref' as const, pattern })),
  ...DECISIONS.map((pattern) => ({ category: 'project' as const, pattern })),
  {
    category: 'general',
    pattern: word(String.raw`(?:please\s+)?(?:remember|note|keep in mind|don['’]t forget)(?:\s+that|:)\s+\S.*`),
  },
]

/** Looks like a statement and asks for something, or only supposes. */
export const NO_STATEMENT = word(
  String.raw`I(?:\s+would|['’]d)?\s+(?:\S+\s+)?(?:want|need|like)\s+(?:you|your|some help|help|to (?:know|ask|see))(?:\s.*)?|^(?:if|unless|suppose|imagine|assume|pretend|wenn|falls|si|se|если|якщо|如果|假如|もし)(?:\s.*)?`,
)
