/** Puts terms into plain requests, such as "Recommend me a laptop". Writers of prompts find such requests too dull. */

/** For each language, requests with `_` in the place of what is wanted. */
const REQUESTS: Readonly<Record<string, readonly string[]>> = {
  en: [
    "Recommend me a _",
    "Which _ should I buy?",
    "I need a new _",
    "best _ for beginners",
    "Where can I get _ near me?",
    "Can you suggest a good _?",
    "I'm looking for _, any tips?",
    "help me choose _",
    "What's a good _ that isn't too expensive?",
    "how do I find the right _",
  ],
  de: [
    "Empfiehl mir _",
    "Welche _ soll ich nehmen?",
    "Ich suche _",
    "Wo bekomme ich gute _?",
    "Ich brauche _, was ist gut?",
    "Kannst du mir _ empfehlen?",
  ],
  fr: [
    "Recommande-moi _",
    "Quel _ choisir ?",
    "Je cherche _",
    "Où trouver _ pas trop cher ?",
    "J'ai besoin de _, une idée ?",
    "Peux-tu me conseiller _ ?",
  ],
  es: [
    "Recomiéndame _",
    "¿Qué _ me compro?",
    "Busco _",
    "¿Dónde encuentro _ a buen precio?",
    "Necesito _, ¿alguna idea?",
    "¿Me puedes sugerir _?",
  ],
  pt: [
    "Me recomenda _",
    "Qual _ devo escolher?",
    "Procuro _",
    "Onde encontro _ com bom preço?",
    "Preciso de _, alguma ideia?",
    "Pode me sugerir _?",
  ],
  hi: ["मुझे _ सुझाओ", "कौन सा _ लूँ?", "मुझे _ चाहिए", "अच्छा _ कहाँ मिलेगा?", "_ के लिए कोई सुझाव?", "_ चुनने में मदद करो"],
  ja: [
    "_のおすすめを教えて",
    "どの_を選べばいいですか?",
    "_を探しています",
    "いい_はどこで見つかりますか?",
    "_が欲しいのですが、どれがいい?",
    "_選びを手伝ってください",
  ],
};

/** A longer term is a sentence already. */
const TERM_WORDS_MAX = 4;

/** One request for a term, another one for each index; undefined if the term is no name of a thing. */
export function plainRequestOf(
  { language, text }: { readonly language: string; readonly text: string },
  index: number,
): string | undefined {
  const requests = REQUESTS[language] ?? [];
  const request = requests[index % requests.length];
  return text.split(/\s+/u).length > TERM_WORDS_MAX || /[.?!？。]/u.test(text)
    ? undefined
    : request?.replace("_", () => text);
}
