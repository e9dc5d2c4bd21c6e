/** Words whose terms are cached: a catalogue repeats the same words. */
const CACHED_MAX = 50_000;

/**
 * Turns texts into index terms: folded words without stop words, English plurals and verb endings. Texts in scripts
 * without blanks are split into words by the runtime's segmenter.
 */
export class TermReader {
  readonly #terms = new Map<string, string | undefined>();

  termsOf(text: string): string[] {
    return wordsOf(text).flatMap((word) => {
      const term = this.#termOf(word);
      return term === undefined ? [] : [term];
    });
  }

  #termOf(word: string): string | undefined {
    if (this.#terms.has(word)) {
      return this.#terms.get(word);
    }
    const term = termOf(word);
    if (this.#terms.size < CACHED_MAX) {
      this.#terms.set(word, term);
    }
    return term;
  }
}

const SCRIPTS_WITHOUT_BLANKS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

/** Splits a text into words. */
export function wordsOf(text: string): string[] {
  if (!SCRIPTS_WITHOUT_BLANKS.test(text)) {
    return text.match(WORD) ?? [];
  }
  const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  return [...segmenter.segment(text)].filter((part) => part.isWordLike).map((part) => part.segment);
}

/** The index term of one word; undefined for a stop word, a single letter or a single digit. */
function termOf(word: string): string | undefined {
  const folded = fold(word);
  return STOPPED.has(folded) || /^[a-z\d]$/.test(folded) ? undefined : stem(folded);
}

/** Lower case without accents. In scripts where marks are vowels, they stay. */
function fold(word: string): string {
  return word
    .normalize("NFKD")
    .replace(/(\p{Script=Latin})\p{M}+/gu, "$1")
    .normalize("NFKC")
    .toLowerCase();
}

/** Plural endings with their replacements, longest first. */
const ENDINGS: readonly (readonly [ending: RegExp, replacement: string])[] = [
  [/^(.{3,})ies$/, "$1y"],
  [/^(.{3,}(?:s|x|z|ch|sh))es$/, "$1"],
  [/^(.{2,}[^su])s$/, "$1"],
];
const VERB_ENDING = /^(.*[aeiouy].*?[a-z])(?:ing|ed)$/;

/** A light stemmer for English; other languages only lose a plural s. */
function stem(word: string): string {
  // Longer than any word: matching the endings takes a time that grows with the square of the length.
  if (!/^[a-z]{4,40}$/.test(word)) {
    return word;
  }
  const singular = ENDINGS.reduce((text, [ending, left]) => text.replace(ending, left), word);
  const root = VERB_ENDING.exec(singular)?.[1];
  if (root === undefined || root.length < 3) {
    return singular;
  }
  return root.replace(/([^aeiouls])\1$/, "$1").replace(/e$/, "");
}

/** Words, by language, that say nothing about the subject of a prompt. */
const STOP_WORDS = {
  en: `a about above after again all also am an and any are aren as at be because been before being below
    between both but by can cannot could did do does doing don down during each even ever few for from
    further get gets getting give go going good got had has have having he her here hers him his how i if
    im in into is isn it its ive just know like lot make many me more most much my need new no nor not now
    of off ok on once one only or other our out over own per please quite really s same say she should so
    some something such t than that the their them then there these they thing things think this those
    through to too two under until up us use using ve very want was way we well were what when where which
    while who whom why will with without work would you your`,
  de: `aber alle als also am an auch auf aus bei bin bis da damit dann das dass dein dem den der des die
    dies diese doch du ein eine einem einen einer er es für hab habe haben hat ich ihr im in ist ja kann
    kein keine man mein meine mich mir mit nach nicht noch nur oder schon sehr sich sie sind so soll sollte
    über um und uns unser unsere von vor war was wenn wer wie wir wird wo zu zum zur`,
  fr: `ai au aux avec c ce ces cette comment d dans de des du elle en est et eu fait il j je l la le les
    leur lui m ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus pour qu que quel quelle
    quels quelles qui s sa sans se ses si son sont sur t tout tu un une vous y`,
  es: `al algo como con cual cuál cuando de del dos el él ella en es esta está este esto ha hay la las le
    lo los más me mi mis muy no nos o para pero por porque qué que se si sí sin sobre son su sus te tengo
    tu un una uno y ya yo`,
  pt: `a ao as até com como da das de do dos e é ela ele em essa esse esta está este eu há isso já mais mas
    me meu minha muito na não nas no nos o os ou para pela pelo por pra qual quando que se sem ser seu só
    sua também tem tenho um uma você`,
} as const;

const STOPPED: ReadonlySet<string> = new Set(
  Object.values(STOP_WORDS).flatMap((list) => list.split(/\s+/).map(fold)),
);
