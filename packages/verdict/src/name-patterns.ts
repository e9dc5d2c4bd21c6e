import { anyCase } from "./any-case.ts";
import { APART, readable } from "./readable-text.ts";

/** The product that an answer may mention, with the data that its ad was served with. */
export interface AdvertisedProduct {
  readonly productName: string;
  readonly advertiser: string;
  readonly landingUrl: string;
}

/** The ways to name a product, as patterns over readable text. */
export interface NamePatterns {
  /** The name itself, in any inflection, spacing and spelling of its numbers. */
  readonly name: RegExp;
  /** The name without its maker, tied to the maker in one sentence: "the Tempo 3 from Stridewell". */
  readonly tied: RegExp | undefined;
  /** The name without its maker, if it is distinctive enough for the maker to be in an earlier sentence. */
  readonly short: { readonly rest: RegExp; readonly maker: RegExp } | undefined;
}

/** A neighbour that would make the name part of a longer word. Some other scripts write no blank beside a name. */
const WORD_PART = "[\\p{Script=Latin}\\p{N}]";
const LEFT = `(?<!${WORD_PART})`;
const PHRASE_END = "[.,;:!?|\\u2029\\u3001\\u3002\\u0964]";
/** Words after a number that show that it belongs to the name: "the Drift 2 is", but not "the Drift 2 colours". */
const AFTER_NUMBER =
  "is|are|was|has|and|or|for|with|from|by|ist|hat|und|oder|von|mit|est|et|ou|avec|es|y|o|con|e|com|tem|tiene";
/**
 * "Drift 2", "Drift II" and "Drift Pro" are other products than "Drift", and "Tempo 3.5" is another than "Tempo 3". A number
 * with APART before it says something else: "Drift (2 kg)".
 */
const OTHER_MODEL = [
  "(?:Pro|PRO|Max|MAX|Plus|PLUS|Mini|MINI|Ultra|ULTRA|Lite|LITE|XL|GT|SE|Air|AIR|Premium|Junior|Kids|Mk|II|III|IV|VI|VII)",
  `\\d{1,2}(?= ?(?:${PHRASE_END}|$)| (?:${AFTER_NUMBER}) )`,
].join("|");
const RIGHT = `(?!${WORD_PART})(?![.,]\\d)(?! (?:${OTHER_MODEL})(?!${WORD_PART}))`;
const ENDING = "(?:e?s)?";
/** A number at the end may be a measure: the "Ridge 45" holds 45 litres and is also called "Ridge 45L". */
const NUMBER_ENDING = "(?:s|[Ll])?";

/** One word between a name and its maker. It isn't "and" or "or": a list of things isn't one thing. */
const GAP_WORD =
  "(?!(?:and|or|und|oder|et|ou|y|o|e|vs|versus|not|nicht|pas|no) )[^ .,;:!?|\\u2029\\u3001\\u3002\\u0964]{1,30}";
const LINK_WORD = `(?:${anyCase(
  "from|by|of|at|von|vom|aus|bei|de|du|des|d|par|chez|da|do|del|por|brand|maker|company|marke|marque|marca|firma|hersteller|का|की|के|से|ने",
)})`;
const POSSESSIVE = " ?(?:の|社の|製の?) ?";
const ARTICLE =
  "[Tt]he|[Tt]his|[Tt]heir|[Ii]ts|[Dd]er|[Dd]ie|[Dd]as|[Dd]en|[Dd]em|[Ll]e|[Ll]a|[Ee]l|[Uu]n|[Uu]ne|[Ee]in|[Ee]ine|[Oo]|[Aa]|[Yy]our|यह";
const BEFORE_SHORT = `(?<=^|${PHRASE_END} ?|(?<!\\p{L})(?:${ARTICLE}) |[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}] ?)`;

/** Tokens that have more than one spelling. */
const SPELLINGS: Readonly<Record<string, string>> = {
  and: "(?:and|und|et|y|e|n|और)",
  mk: "(?:mk|mark)\\.?",
  spf: "(?:spf|lsf|fps)",
  ...numberSpellings(),
};

function numberSpellings(): Record<string, string> {
  const numbers = [
    ["1", "i", "one", "eins", "un", "uno", "um"],
    ["2", "ii", "two", "zwei", "deux", "dos", "dois"],
    ["3", "iii", "three", "drei", "trois", "tres"],
    ["4", "iv", "four", "vier", "quatre", "cuatro", "quatro"],
    ["5", "v", "five", "funf", "cinq", "cinco"],
  ];
  return Object.fromEntries(
    numbers.flatMap(([digit = "", roman = "", ...words]) => {
      const pattern = `(?:${[digit, roman, ...words].join("|")})`;
      return [[digit, pattern], ...(roman.length > 1 ? [[roman, pattern]] : [])];
    }),
  );
}

/** For a name without any letter or digit: a pattern made from it would match everywhere. */
const NEVER = /(?!)/gu;

/** Builds the patterns of one product. */
export function namePatterns({ productName, advertiser }: AdvertisedProduct): NamePatterns {
  const tokens = tokensOf(productName);
  const [first, ...others] = tokens;
  if (first === undefined) {
    return { name: NEVER, tied: undefined, short: undefined };
  }
  // "1.Velmora" is a list item, but "1.5" is a number.
  const before = /^\p{N}/u.test(first) ? "(?<!\\d[.,])" : "";
  const ending = /^\d+$/.test(tokens.at(-1) ?? "") ? NUMBER_ENDING : ENDING;
  const name = new RegExp(`${LEFT}${before}${sequence(tokens)}${ending}${RIGHT}`, "gu");
  const isMakerFirst = others.length > 0 && tokensOf(advertiser)[0] === first;
  if (isMakerFirst) {
    return { name, tied: tiedPattern(others, [first]), short: shortPatterns(others, first) };
  }
  // "Lanternreach" counts for "Lanternreach Chronicles" if the maker is named with it.
  const shortened = others.length > 0 && !/\d/.test(tokens.at(-1) ?? "") ? tokens.slice(0, -1) : [];
  const maker = tokensOf(advertiser);
  const isTied = shortened.length > 0 && maker.length > 0;
  return { name, tied: isTied ? tiedPattern(shortened, maker) : undefined, short: undefined };
}

const WORD_CHARS_MIN = 4;
/** Labels such as "(ad)" are read as this word, also in a name. */
const LABEL_WORD = "sponsored";

/**
 * The longest word that each mention of a product has, in small Latin letters, without the `s` of its end; undefined if there is no such
 * word that is long enough. Paraphrases may lack the last word of a name, and some words and numbers have several spellings.
 */
export function wordOfEachMention(productName: string): string | undefined {
  const tokens = tokensOf(productName);
  const inEach = tokens.length > 1 ? tokens.slice(0, -1) : tokens;
  const words = inEach
    .filter((token) => SPELLINGS[token] === undefined && token !== LABEL_WORD)
    .map((token) => token.replace(/s$/, ""))
    .filter((word) => /^[a-z]+$/.test(word) && word.length >= WORD_CHARS_MIN);
  return words.toSorted((one, other) => other.length - one.length)[0];
}

function tokensOf(name: string): string[] {
  return readable(name)
    .toLowerCase()
    .replaceAll(APART, " ")
    .split(" ")
    .filter((token) => token !== "");
}

/** Between two tokens of a name. "Tempo (3)" and "Tempo – 3" name the Tempo 3. */
const JOIN = ` ?\\${APART}?`;

/** The tokens of a name in order, as separate words or written as one. */
function sequence(tokens: readonly string[]): string {
  return tokens.map(tokenPattern).join(JOIN);
}

function tokenPattern(token: string): string {
  const spelling = SPELLINGS[token] ?? token.replace(/[.?|]/g, "\\$&").replace(/(?<=[a-z]{3})s$/, "s?");
  return `(?:${anyCase(spelling)}${splits(token)
    .map((split) => `|${split}`)
    .join("")})`;
}

const SPLIT_TOKEN_CHARS_MIN = 7;
const SPLIT_PART_CHARS_MIN = 2;

/**
 * A coined word written as two, with capitals: "Task Orchard". In small letters they are common words: "a second
 * summer".
 */
function splits(token: string): string[] {
  if (token.length < SPLIT_TOKEN_CHARS_MIN || !/^[a-z]+$/.test(token)) {
    return [];
  }
  const places = Array.from(
    { length: token.length - 2 * SPLIT_PART_CHARS_MIN + 1 },
    (_, at) => at + SPLIT_PART_CHARS_MIN,
  );
  return places.map((at) => `${capitalised(token.slice(0, at))} ${capitalised(token.slice(at))}`);
}

function capitalised(token: string): string {
  return `${token.slice(0, 1).toUpperCase()}${anyCase(token.slice(1))}`;
}

function tiedPattern(rest: readonly string[], maker: readonly string[]): RegExp {
  const by = `${LEFT}${sequence(maker)}(?: ?s)?(?!${WORD_PART})`;
  const free = `${sequence(rest)}${ENDING}${RIGHT}`;
  const named = isDistinctive(rest) ? free : `${rest.map(capitalised).join(JOIN)}${ENDING}${RIGHT}`;
  const possessive = `${LEFT}${sequence(maker)}(?: s |s |${POSSESSIVE})${free}`;
  const makerFirst = `${by}(?:${POSSESSIVE}| (?:${GAP_WORD} ){1,3})${named}`;
  const makerLast = `${LEFT}${named},? ?(?:${GAP_WORD},? ){0,5}${LINK_WORD} (?:${GAP_WORD} ){0,2}${by}`;
  // "Tempo 3 (Stridewell)". A single common word beside the maker may be just that word.
  const beside = isDistinctive(rest) ? `|${LEFT}${named} \\${APART}?${by}` : "";
  return new RegExp(`${possessive}|${makerFirst}|${makerLast}${beside}`, "gu");
}

/** Whether the name without its maker is more than one common word. */
function isDistinctive(rest: readonly string[]): boolean {
  return rest.length > 1 || rest.some((token) => /\d/.test(token));
}

function shortPatterns(rest: readonly string[], maker: string): NamePatterns["short"] {
  if (!isDistinctive(rest)) {
    return undefined;
  }
  const [head = "", ...tail] = rest;
  const named = [/^[a-z]/.test(head) ? capitalised(head) : head, ...tail.map(capitalisedOrNumber)].join(JOIN);
  return {
    rest: new RegExp(`${BEFORE_SHORT}${named}${ENDING}${RIGHT}`, "gu"),
    maker: new RegExp(`${LEFT}${tokenPattern(maker)}`, "u"),
  };
}

function capitalisedOrNumber(token: string): string {
  return SPELLINGS[token] === undefined && /^[a-z]/.test(token) ? capitalised(token) : tokenPattern(token);
}
