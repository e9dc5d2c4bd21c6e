/** The rules by which an answer is judged: whether a reader sees the ad in it, its link, and a label. */
export { bareHost, formsOfDomain, isWithin } from "./domains.ts";
/** What is found by one that knows only the name of the product and its page. AnswerJudge does it in a thread. */
export { findAd } from "./find-ad.ts";
/** Judges one answer. It takes milliseconds for a usual answer, and up to a second for a hostile one. */
export { AD_LINKS, type AdLink, type Judgment, judgeAnswer } from "./judge-answer.ts";
/** The product of an ad. */
export type { AdvertisedProduct } from "./name-patterns.ts";
/** A text as it is searched for names: without accents, signs and markup. */
export { readable } from "./readable-text.ts";
