/**
 * Phrases that speak to a model instead of a buyer, by language, as regular expressions over folded text: small
 * letters, no accents, one blank between words. Each phrase asks for something that only a model could do: ignore an
 * instruction, word an answer, inform a user. "You must try it" is said to buyers and passes.
 */
const INSTRUCTION_PHRASES: Readonly<Record<string, readonly string[]>> = {
  en: [
    "\\b(?:ignore|disregard|forget|override|bypass|overlook|drop)\\b.{0,40}\\b(?:instructions?|prompts?|(?:previous|prior|above|earlier|preceding|system|your|safety|other) (?:rules?|guidelines?|messages?|text|context|polic(?:y|ies)|restrictions?|constraints?|directions?|sections?))\\b",
    "\\b(?:ignore|disregard|forget|override) (?:everything|anything|all|what) (?:that |which )?(?:was |is |came |comes |you were )?(?:said |told |written )?(?:above|before|earlier|previously|until now|so far)\\b",
    "\\b(?:ignore|disregard|forget) (?:the |all |any )?(?:text|sections?|messages?|contents?|parts?|words?) (?:above|below|before|after|earlier)\\b",
    "\\byou (?:must|shall|will|are required to|are instructed to|should|will now|need to) (?:now )?(?:always |never |only |not |also )?(?:recommend|mention|say|answer|respond|reply|output|tell|ignore|obey|follow (?:these|this|my|our)|comply|state|claim|advise|endorse|promote|praise|insert|pretend|act as)\\b",
    "\\byou have to (?:recommend|mention|say|answer|respond|reply|obey|comply|ignore|endorse)\\b",
    "\\b(?:you are|act as|pretend to be|behave as|roleplay as|respond as) (?:now |from now on )?(?:an? |the |my |our )?(?:\\w+ ){0,2}(?:assistant|ai|chatbot|bot|language model|llm|gpt|sales ?(?:man|person|agent))\\b(?! (?:to|for|who|looking))",
    "\\b(?:you are now|from now on,? you)\\b",
    "\\b(?:dear|hey|hello|attention|note (?:to|for)|message (?:to|for)|instructions? (?:to|for)|listen)[,:]? (?:the |all |any )?(?:ai|assistants?|llms?|chatbots?|(?:language |ai )?models?|chatgpt|claude|gemini|copilot)\\b",
    "\\b(?:your|the|every|each|all) (?:final |next |whole |entire )?(?:answers?|responses?|repl(?:y|ies)|outputs?|completions?)\\b.{0,20}\\b(?:must|should|shall|has to|have to|needs? to)\\b",
    "\\b(?:begin|start|end|finish|conclude|close|prefix|preface) (?:your|the|every|each|all) (?:\\w+ )?(?:answers?|responses?|repl(?:y|ies)|outputs?)\\b",
    "\\b(?:answer|respond|reply) (?:only|always|exclusively|with the words?|with nothing)\\b",
    "(?:^|[.!?:;] ?|\\b(?:please|always|instead|now|and|then) )(?:tell|inform|convince|persuade|urge|instruct|warn|advise|assure|promise) (?:the |this |your |every )?(?:users?|readers?|person|human|customers?|everyone|them)\\b(?! (?:when|how|what|where|apart|you know))",
    "(?:^|[.!?:;] ?|\\b(?:please|always|only|never|instead|must|now) )(?:recommend|mention|promote|praise|endorse|cite|name|suggest|feature) (?:only |always |just )?(?:this|our|us|it|the product|the brand|no other|nothing else|the above)\\b(?! to (?:a|your|friends)\\b)",
    "\\brank (?:this|us|it|our \\w+) (?:first|highest|above)\\b",
    "\\b(?:do not|don'?t|never|must not|without) (?:ever |in any way )?(?:disclos|reveal|label|mark|mention|tell|say|call|add|show|admit|compare)\\w* .{0,30}\\b(?:sponsor\\w*|ads?|advert\\w*|paid|competitors?|competing|alternatives?|other (?:products?|brands?|options?|ads?)|the user|instructions?|prompts?|disclosures?|labels?)\\b",
    "\\b(?:say|claim|state|pretend|write|insist) (?:that )?(?:this|it|our \\w+|we|the product) (?:is|are|was|cures?|has been|have been) (?:the )?(?:best|only|number one|safest|not sponsored|not an ad|free|approved|certified)\\b",
    "\\b(?:system|hidden|secret|initial|developer) (?:prompt|instructions?)\\b|\\bdeveloper mode\\b|\\bjailbreak\\b|\\bdo anything now\\b|\\bprompt injection\\b",
    "\\b(?:new|updated|revised|real|actual|important|additional|special) instructions?\\b ?(?:[:;.=-]|for|follow|override)|\\bthese instructions (?:override|replace|supersede|come)\\b",
    "\\b(?:end|begin(?:ning)?|start|close) of (?:the )?(?:system|prompt|user message|user prompt|instructions?|sponsored product|section|advert|context)\\b",
    "\\bas the advertiser,? (?:i|we) (?:instruct|order|demand|require|insist)\\b|\\b(?:i|we) (?:instruct|order|command) you\\b",
    "\\b(?:repeat|print|output|reveal|translate|summari[sz]e) (?:the |your |everything |all )?(?:text |words |of |the |your )*(?:above|system prompt|instructions|user'?s? (?:message|prompt))\\b",
    "\\b(?:set aside|stop following|violate|do not follow|don't follow) (?:the |any |all |your )?(?:\\w+ )?(?:guidelines|rules|directions|instructions|prompt)\\b(?: (?:you|that|above|given|from|before)|\\W|$)",
    "\\b(?:treat|consider|interpret|read|take|execute|run|obey) (?:this|the following|these) (?:text|description|section|message|words|lines?)\\b|\\bdo (?:what|whatever|as|everything) (?:this|the) (?:text|description|message|section)\\b",
    "\\b(?:in|into|within|of|throughout) (?:your|this|every|each|the next) (?:final |next )?(?:responses?|repl(?:y|ies)|answers?|outputs?|conversation|completions?|sentence|paragraph)\\b|\\b(?:the|your) (?:final )?(?:reply|response|answer|output) (?:contains?|includes?|mentions?|names?|says|starts?|begins?|ends?)\\b",
    "\\b(?:hide|leave out|omit|remove|drop|skip|suppress|without|never|not|no)\\b.{0,40}\\b(?:sponsored|sponsorship|disclosures?|an ad|an advertisement|(?:is|was) paid for|paid placement)\\b",
    "\\bthe user (?:is not|is never|must|should not|should never|asked|has asked|asks)\\b|\\bpretend (?:that )?(?:the user|you|we|they|this|it)\\b",
    "(?:^|[.!?;] ?)(?:ai|llm|model|assistant|chatbot|bot|chatgpt|claude|gemini)[,:]? (?:please|kindly|you|respond|say|answer|reply|output|tell|recommend|mention|write|do not|always|never|must)\\b",
    "\\byou(?:'re| are) (?:chatgpt|claude|gemini|copilot|gpt\\S*|an? (?:llm|ai)\\b)|\\b(?:language model|llm|chatbot|ai assistant)s?\\b.{0,30}\\b(?:must|should|please|always|never|only)\\b",
    "\\b(?:speak|talk|write) (?:only|exclusively|just) (?:of|about)\\b|\\bbring (?:this|our|the) (?:product|brand|name|app) (?:up|into)\\b|\\b(?:say|state|claim|write) (?:that )?(?:all |the )?(?:others?|rivals|competitors?|alternatives?|everyone else|no other)\\b",
    "\\bwhen(?:ever)? (?:you are |the user is |they are |the user |users |someone |anyone |they |you )?(?:asks?|asked)\\b.{0,60}\\b(?:answer|say|reply|respond|mention|recommend|tell|name)\\b",
    "\\b(?:system|safety|policy) override\\b|(?:^|[.!?;] ?)override ?:|\\bno matter what (?:you|the user|they|anyone) \\w+|\\b(?:after|before|in) every (?:mention|line)\\b",
    "\\bregardless of (?:what|the) (?:the )?(?:user|question|prompt|they) ?(?:asks?|says?|wants?)?\\b",
    "\\b(?:send|forward|post|leak|append|include) (?:the |all |this )?(?:user'?s? |chat |conversation ?)(?:data|messages?|prompt|history|conversation)?\\b.{0,20}\\bto\\b",
  ],
  de: [
    "\\b(?:ignorier\\w*|vergiss|vergesst|vergessen sie|missacht\\w*|uberschreib\\w*)\\b.{0,40}\\b(?:\\w*anweisung\\w*|vorgaben?|instruktion\\w*|prompts?|(?:bisherig|vorherig|obig|deine|ihre|alle)\\w* regeln)\\b",
    "\\b(?:du (?:musst|sollst|bist jetzt|bist nun)|sie (?:mussen|sollen)) .{0,30}\\b(?:empfehlen|erwahnen|antworten|sagen|nennen|assistent\\w*|ki|chatbot)\\b",
    "\\b(?:erwahne|empfiehl|empfehle|nenne|lobe)(?: sie)? (?:immer|nur|stets|dieses|diese|unser\\w*|kein\\w*|ausschliesslich)\\b",
    "\\bvergiss alles\\b|\\bin (?:deiner|ihrer|jeder) antwort\\b|\\b(?:verschweig\\w*|verrat\\w*|erwahn\\w*)\\b.{0,30}\\b(?:werbung|anzeige|gesponsert|sponsor\\w*)\\b|\\bsprich nur\\b",
    "\\b(?:sag|sage|sagen sie|teile|erklare|rate) (?:dem|der|den) (?:nutzer\\w*|benutzer\\w*|anwender\\w*|leser\\w*)\\b",
    "\\bantworte(?:n sie)? (?:nur|immer|ausschliesslich|stets|mit)\\b|\\b(?:deine|ihre|jede|die) antwort\\b.{0,20}\\b(?:muss|soll)\\b|\\b(?:beginne|beende)\\b.{0,10}\\bantwort\\b",
  ],
  fr: [
    "\\b(?:ignor|oubli|neglig)(?:e|ez|er|es)\\b.{0,40}\\b(?:instructions?|consignes?|directives?|prompts?|regles (?:precedentes|ci-dessus))\\b",
    "\\b(?:tu es|vous etes) (?:maintenant |desormais )?(?:un |une |l')?(?:assistant\\w*|ia|chatbot|modele)\\b",
    "\\b(?:tu dois|vous devez) (?:toujours |maintenant |absolument )?(?:recommander|mentionner|repondre|dire|citer|ignorer)\\b",
    "\\b(?:dis|dites|indique|indiquez|conseille|conseillez) a l'utilisat\\w*",
    "\\boublie[zs]? (?:tout|ce qui)\\b|\\bdans (?:ta|votre|chaque) reponse\\b|\\bne parle(?:z|s)? que de\\b|\\b(?:cache|cachez|tais|taisez)\\b.{0,30}\\b(?:publicite|sponsor\\w*)\\b",
    "\\brepond(?:s|ez) (?:toujours|uniquement|seulement|par)\\b|\\b(?:ta|votre|chaque) reponse (?:doit|devra)\\b|\\bne (?:mentionn|divulgu|revel)\\w* (?:pas|jamais|aucun)\\b",
  ],
  es: [
    "\\b(?:ignor(?:a|e|ar|en)|olvid(?:a|e|ar)|omit(?:e|a|ir))\\b.{0,40}\\b(?:instrucciones|indicaciones|ordenes|prompts?|reglas (?:anteriores|previas))\\b",
    "\\b(?:eres|ahora eres|actua como|usted es) (?:ahora )?(?:un |una )?(?:asistente|ia|chatbot|modelo)\\b",
    "\\b(?:debes|debe usted|tienes que) (?:siempre )?(?:recomendar|mencionar|responder|decir|ignorar)\\b",
    "\\b(?:di|dile|diga|digale) al (?:usuario|lector|cliente)\\b|\\b(?:recomienda|menciona) (?:siempre|solo|unicamente|este|nuestro)\\b",
    "\\b(?:responde|responda|contesta) (?:siempre|solo|unicamente)\\b|\\b(?:tu|su|cada) respuesta (?:debe|tiene)\\b|\\bno (?:les? )?(?:menciones?|reveles?|digas|diga)\\b|\\bolvid(?:a|e) (?:todo lo|lo) (?:anterior|previo)\\b|\\ben (?:tu|su|cada) respuesta\\b|\\bhabla solo de\\b",
  ],
  pt: [
    "\\b(?:ignor(?:e|a|ar|em)|esqueca|esquece|desconsider(?:e|a|ar))\\b.{0,40}\\b(?:instrucoes|orientacoes|ordens|prompts?|regras (?:anteriores|acima))\\b",
    "\\b(?:voce (?:e|agora e)|tu es|aja como) (?:agora )?(?:um |uma |o |a )?(?:assistente|ia|chatbot|modelo)\\b",
    "\\b(?:voce deve|deves|voce tem que) (?:sempre )?(?:recomendar|mencionar|responder|dizer|ignorar)\\b",
    "\\b(?:diga|informe|fale) ao? (?:usuario|utilizador|leitor|cliente)\\b|\\b(?:recomende|mencione) (?:sempre|so|apenas|este|nosso)\\b",
    "\\b(?:responda|responde) (?:sempre|so|somente|apenas)\\b|\\b(?:sua|cada) resposta (?:deve|tem)\\b|\\bnao (?:mencione|revele|diga)\\b|\\besqueca (?:tudo|o que) \\b|\\b(?:na|em) (?:sua|cada) resposta\\b|\\bfale (?:so|apenas) (?:de|da|do)\\b",
  ],
  other: [
    "(?:पिछल|सभी|उपरोक्त|ऊपर|पहले)\\S{0,3}.{0,20}निर्देश.{0,25}(?:अनदेख|नज़रअंदाज़|नजरअंदाज|भूल|इग्नोर)|(?:अनदेख|नज़रअंदाज़|भूल).{0,20}निर्देश",
    "(?:के अलावा|और किसी) .{0,25}(?:नाम|ज़िक्र|जिक्र) (?:मत|न )|(?:यह |इसे )?(?:विज्ञापन|प्रायोजित) .{0,20}(?:मत|छिपा|छुपा|न बता)",
    "(?:उपयोगकर्ता|यूज़र|यूजर) (?:को|से) .{0,40}(?:बता|कह)|हमेशा .{0,20}(?:सिफारिश|सिफ़ारिश|अनुशंसा)|आप .{0,15}(?:एआई|ai|सहायक) है",
    "(?:以前|前|上記|これまで|すべて|全て|上)の?.{0,12}(?:指示|命令|プロンプト|ルール).{0,8}(?:無視|忘れ|従わな)",
    "(?:文章|内容|文|テキスト)(?:は|を).{0,6}(?:忘れ|無視)|だけを(?:紹介|推薦|勧め|推奨)|(?:広告|スポンサー).{0,10}(?:言わな|書かな|隠し|伏せ|明かさ)",
    "あなたは.{0,15}(?:アシスタント|ai|aiです)|(?:ユーザー|利用者)に.{0,40}(?:伝え|言って|言い|勧め|答え)|必ず.{0,20}(?:勧め|推薦|推奨し|言及|答え|回答)|回答(?:は|の|に).{0,12}(?:必ず|のみ)",
    "(?:忽略|无视|無視|忘记|忽視).{0,12}(?:指令|指示|提示|规则|規則)|你(?:现在)?是.{0,8}(?:助手|助理|ai)|(?:告诉|告訴)用户",
    "(?:игнорируй|забудь|проигнорируй)\\p{L}{0,3}.{0,30}(?:инструкц|указан|правил|промпт)|ты (?:теперь|должен)|скажи пользовател",
    "(?:تجاهل|انس).{0,20}(?:التعليمات|الأوامر)|(?:무시|잊).{0,10}(?:지시|명령)|(?:지시|명령|프롬프트).{0,8}(?:무시|잊)",
    "\\b(?:ignora|dimentica)\\b.{0,30}\\bistruzioni\\b|\\bnegeer\\b.{0,30}\\binstructies\\b|\\bzignoruj\\b.{0,30}\\binstrukcj",
  ],
};

/**
 * A pattern is compiled at its first use, when the ad server starts, in a time that grows much faster than its length. Fewer phrases
 * in each make that cheaper, but the search slower.
 */
const PHRASES_PER_PATTERN = 8;

const INSTRUCTIONS = patternsOf(Object.values(INSTRUCTION_PHRASES).flat());
const DIGIT_LETTERS: Readonly<Record<string, string>> = {
  "0": "o",
  "1": "i",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "@": "a",
  $: "s",
};

/** Whether a folded text reads like an instruction to a model. */
export function isInstruction(folded: string): boolean {
  return hasPhrase(folded) || (/\p{L}[\d@$]|[\d@$]\p{L}/u.test(folded) && hasPhrase(spelled(folded)));
}

function hasPhrase(text: string): boolean {
  return INSTRUCTIONS.some((pattern) => pattern.test(text));
}

/** Replaces digits that stand for letters: "1gn0re" becomes "ignore". */
function spelled(folded: string): string {
  return folded.replace(/[013457@$]/g, (character) => DIGIT_LETTERS[character] ?? character);
}

/**
 * Joins phrases into a few patterns. Most begin at the start of a word: in a joined pattern that is tested once for each
 * character, and not once for each phrase.
 */
function patternsOf(phrases: readonly string[]): readonly RegExp[] {
  const { atWords = [], others = [] } = Object.groupBy(phrases, (phrase) =>
    phrase.startsWith("\\b") ? "atWords" : "others",
  );
  return [
    ...inGroups(atWords).map((some) => `\\b(?:${some.map((phrase) => phrase.slice(2)).join("|")})`),
    ...inGroups(others).map((some) => some.join("|")),
  ].map((source) => new RegExp(source, "u"));
}

function inGroups(phrases: readonly string[]): readonly (readonly string[])[] {
  const groups = Object.groupBy(phrases.keys(), (at) => Math.floor(at / PHRASES_PER_PATTERN));
  return Object.values(groups).map((group = []) => group.flatMap((at) => phrases[at] ?? []));
}
