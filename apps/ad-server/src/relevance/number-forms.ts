/** An ending of singulars and the ending that plurals have instead. */
interface Endings {
  readonly singular: string;
  readonly plural: string;
  /** What stands before both endings. */
  readonly after: RegExp;
}

const endings = (singular: string, plural: string, after = /.{3}$/u): Endings => ({
  singular,
  plural,
  after,
});

/** In every language, since words travel. A root of two letters must be an abbreviation: TVs is a plural, gas is none. */
const PLURAL_S = endings("", "s", /..[^s]$|^[^aeiouys]{2}$/u);
/**
 * Endings by language, in folded spelling: small letters without accents. In German and Hindi they are also those of
 * cases. They are chosen so that few unrelated words meet; "Reis" and "Reise" are two that do.
 */
const ENDINGS: Readonly<Record<string, readonly Endings[]>> = {
  en: [
    endings("", "es", /.(?:[sxzo]|ch|sh)$/u),
    endings("y", "ies", /.[^aeiou]$/u),
    endings("f", "ves", /../u),
    endings("fe", "ves", /../u),
    endings("man", "men", /^/u),
    endings("child", "children", /^/u),
    endings("person", "people", /^/u),
    endings("foot", "feet", /^/u),
    endings("tooth", "teeth", /^/u),
    endings("mouse", "mice", /^/u),
  ],
  de: [
    endings("", "e"),
    endings("", "n", /..(?:e|el|er)$/u),
    endings("", "en"),
    endings("", "er"),
    endings("", "ern"),
    endings("", "nen", /..in$/u),
  ],
  fr: [endings("", "x", /.(?:au|eu|ou)$/u), endings("al", "aux", /../u), endings("ail", "aux", /../u)],
  es: [endings("", "es", /..[bdjlnrsy]$/u), endings("z", "ces", /../u)],
  pt: [
    endings("", "es", /..[rsz]$/u),
    endings("ao", "oes", /../u),
    endings("ao", "aes", /../u),
    endings("l", "is", /.[aeou]$/u),
    endings("il", "is", /../u),
    endings("il", "eis", /../u),
    endings("m", "ns", /.[aeiou]$/u),
  ],
  hi: [
    endings("ा", "े", /../u),
    endings("ा", "ों", /../u),
    endings("", "ें", /../u),
    endings("", "ों", /../u),
    endings("ी", "ियाँ", /./u),
    endings("ी", "ियां", /./u),
    endings("ी", "ियों", /./u),
  ],
};

const KNOWN_ENDINGS: Readonly<Record<string, readonly Endings[]>> = {
  other: [PLURAL_S],
  ...Object.fromEntries(Object.entries(ENDINGS).map(([language, own]) => [language, [PLURAL_S, ...own]])),
};

/** Words without a plural of their own. The plurals that they seem to have are other words: news, goods, cans, wills. */
const UNCOUNTED = new Set("new good can will may mine one our other her your their must".split(" "));
/** Longer than any word of these languages. */
const WORD_CHARS_MAX = 40;

/** A folded word with its singulars and plurals, as a language forms them. */
export function numberFormsOf(word: string, language: string): ReadonlySet<string> {
  const forms = new Set([word]);
  if (UNCOUNTED.has(word) || word.length > WORD_CHARS_MAX) {
    return forms;
  }
  const known = KNOWN_ENDINGS[language] ?? KNOWN_ENDINGS["other"] ?? [];
  for (const { singular, plural, after } of known) {
    const form = exchanged(word, plural, singular, after);
    if (form !== undefined && !UNCOUNTED.has(form)) {
      forms.add(form);
    }
  }
  for (const base of [...forms]) {
    for (const { singular, plural, after } of known) {
      forms.add(exchanged(base, singular, plural, after) ?? base);
    }
  }
  return forms;
}

/** The word with another ending; undefined if it doesn't have the first one. */
function exchanged(word: string, from: string, to: string, after: RegExp): string | undefined {
  if (!word.endsWith(from)) {
    return undefined;
  }
  const root = word.slice(0, word.length - from.length);
  return after.test(root) ? root + to : undefined;
}
