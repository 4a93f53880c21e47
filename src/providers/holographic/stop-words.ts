import { fold } from './fold.js'

/** Words that join others and name nothing. They are left out of queries and never begin or are an entity. */
const LISTS = [
  // English
  `a about above after again against all also am an and any are aren't as at be because been before being below between both but by
   can can't cannot could couldn't did didn't do does doesn't doing don't down during each else ever every few for from further get got
   had hadn't has hasn't have haven't having he her here hers herself him himself his how however i i'd i'll i'm i've if in into is isn't it
   it's its itself just let let's may me might more most must my myself no nor not now of off on once only or other ought our ours
   ourselves out over own please same shall she should shouldn't since so some such than that that's the their theirs them themselves
   then there these they this those though through thus to too under until up upon us very was wasn't we we're were weren't what what's when
   where whether which while who whom whose why will with won't would wouldn't yes yet you you're your yours yourself yourselves`,
  // German
  `aber als am an auch auf aus bei bin bis bist da damit dann das dass dein deine dem den der des die dies diese dieser doch du ein eine einem
   einen einer eines er es euch für habe haben hat hatte ich ihm ihn ihr ihre im in ist ja jede jeder kann kein keine können man mein
   meine mich mir mit muss nach nicht noch nun nur ob oder ohne sehr sein seine sich sie sind so über um und uns unser unsere unter vom von vor
   war warum was weil wenn wer werden wie wir wird wo zu zum zur`,
  // French, Spanish, Italian, Portuguese, Dutch
  `alors au aux avec ce ces cette comme dans de des donc du elle en est et eux il ils je la le les leur lui ma mais me mes moi mon ne nos notre
   nous on ou où par pas pour que qui sa se ses son sont sur ta te tes toi ton tu un une vos votre vous
   al algo como con cuando de del desde donde el ella ellos en entre era es esa ese eso esta este esto fue ha hay la las lo los más mi mis
   muy nos o para pero por porque que quien se ser si sin sobre son su sus también te tiene tu tus un una uno y ya yo
   che chi ci con da dei del della delle di dove e è gli ha ho il io lei loro lui ma mi mia mio nel nella noi non per perché più quando
   quello questa questo sei si sono sua suo ti tra tu tuo una uno voi
   ao aos as até com da das do dos e ela ele em entre era essa esse eu foi isso já mais mas me meu minha muito na não nas nem no nos nós o os ou
   para pela pelo por qual quando que quem se sem seu sua também te um uma você
   aan als bij dat de die dit een en er haar het hij hoe ik in is je maar me met mijn naar niet nog of om onze ook op te tot uit van voor
   wat we wij wordt ze zich zij zijn zo`,
  // Russian, Ukrainian, Greek
  `а без был была были было быть в вам вас ваш весь во вот все всё вы где да для до его ее её если есть еще же за здесь и из или им их к как ко
   когда кто ли меня мне мой моя моё мои мы на над нам нас наш не него нее нет ни них но о об он она они оно от по под при с со так также там то тоже
   только ты у уже что чтобы эта эти это этот я
   або але був була було були в ви від він вона вони все для до є з за і із й його її їх коли ми мене мені мій моя на не ні про та так те ти то у це цей що щоб як
   από για δεν είναι εγώ εμείς ένα ένας εσύ η ή θα και κατά με μας μου μια να οι όταν ο που προς σε στη στην στο στον τα της τη την τις το
   τον του τους των ως`,
  // Arabic, Hebrew, Hindi
  `أن أنا أو أي إذا إلا إلى إن التي الذي الى ان انا او به بعد بين تم حتى ثم ذلك على عن عند غير في فيها قد قبل كان كانت كل كما لا لقد لكن لم له لها ما مع من منذ نحن
   هذا هذه هل هناك هو هي و وفي يا
   אבל או אולי אז אחרי אין איך אל אם אני אנחנו את אתה גם הוא היא היה הם זאת זה יש כי כל כמו לא לפני מה מי על עם של שלי
   अपना आप इस इसके उस एक और का कि की के को क्या था थी थे नहीं पर भी मुझे में मेरा मेरी मेरे मैं यह या वह वे से हम हमने हर हूँ हूं है हैं हो`,
  // Chinese, Japanese, Korean, Thai
  `我们 我們 你们 你們 他们 她们 它们 自己 什么 什麼 怎么 怎麼 这个 這個 那个 那個 这里 那里 因为 因為 所以 但是 如果 就是 还是 還是 可以 没有 沒有 已经 已經 一个 一個 非常
   喜欢 喜歡 使用 需要 决定 決定 选择 選擇 住在 来自 來自 觉得 覺得 知道 认为 認為 正在 总是 總是 通常 从不 偏好
   これ それ あれ ここ そこ どこ こと もの ため よう です ます した する して いる ある ない なる れる られる から まで ので のに けど でも また そして 好き 必要 私 僕 俺
   저는 나는 제가 내가 우리 우리는 그리고 하지만 그런데 그래서 이것 그것 저것 있다 없다 한다 합니다 있습니다 좋아 좋아해 좋아해요 좋아합니다 사용 사용합니다
   และ หรือ แต่ ที่ ใน จาก ของ เป็น คือ ให้ ได้ ไม่ มี จะ กับ ว่า ผม ฉัน ดิฉัน เรา คุณ เขา ชอบ ใช้ ต้องการ`,
]

export const STOP_WORDS: ReadonlySet<string> = new Set(
  LISTS.flatMap((list) => list.split(/\s+/).filter((word) => word !== '')).flatMap((word) => {
    const folded = fold(word)
    // "don't" is one word here and two in an index; both spellings and what is left before the apostrophe are idle.
    return folded.includes("'") ? [folded, folded.replace("'", ''), ...folded.split("'")] : [folded]
  }),
)
