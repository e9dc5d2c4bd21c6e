import { bareHost, isWithin } from "@adrelay/verdict";
import { asciiDomain } from "../landing-url.ts";

/** Words of these scripts contain joiners; emoji do too. */
const JOINING_SCRIPTS = [
  "Devanagari",
  "Bengali",
  "Gurmukhi",
  "Gujarati",
  "Tamil",
  "Telugu",
  "Kannada",
  "Malayalam",
  "Sinhala",
  "Arabic",
].map((script) => `\\p{Script=${script}}`);
const JOINERS = new RegExp(
  `(?<=[${JOINING_SCRIPTS.join("")}]|\\p{Extended_Pictographic}|\\ufe0f|\\p{Emoji_Modifier})(?:\\u200c|\\u200d)(?=\\p{L}|\\p{Extended_Pictographic})`,
  "gu",
);
const EMOJI_SELECTOR = /(?<=[\p{Extended_Pictographic}#*\d])[\ufe0e\ufe0f]/gu;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|[\u2800\ufff9-\ufffb]/u;
const CONTROL = /(?![\n\r\t])\p{Cc}|[\u2028\u2029]/u;
const BIDI = /\p{Bidi_Control}/u;
const UNASSIGNED = /\p{Co}|\p{Cn}|\p{Cs}|\ufffd/u;
const STACKED_MARKS = /\p{M}{5,}/u;
const NON_ASCII = /[^\x20-\x7e]/;

/**
 * The fault of a text with characters that hide something or change how the text reads; undefined if there are none.
 */
export function suspectCharacters(raw: string): string | undefined {
  if (!NON_ASCII.test(raw)) {
    return undefined;
  }
  const text = raw.replace(JOINERS, "").replace(EMOJI_SELECTOR, "");
  if (CONTROL.test(text)) {
    return "has a control character";
  }
  if (BIDI.test(text)) {
    return "has a character that changes the direction of text";
  }
  if (INVISIBLE.test(text)) {
    return "has an invisible character";
  }
  if (UNASSIGNED.test(text)) {
    return "has a character without a meaning";
  }
  return STACKED_MARKS.test(text) ? "has stacked accents" : mixedScripts(raw);
}

/** Alphabets with letters that look like Latin ones. */
const LOOKALIKE_SCRIPT =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\p{Script=Deseret}]/u;
const LATIN = /\p{Script=Latin}/u;
/** Units and symbols such as µm, kΩ and Δt, which spoof nothing. */
const SIGN = /^(?:[µμΔΩπαβγλσ]\p{Script=Latin}{0,2}|\p{Script=Latin}{1,2}[ΩμΔ])$/u;
/** Cyrillic and Greek letters that look exactly like Latin ones. */
const LOOKALIKES = /^[авекмнорстухіјѕԁԛԝһАВЕКМНОРСТУХІЈЅαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/u;

/** Words that only look Latin: words of two alphabets, and words of lookalike letters within a Latin text. */
function mixedScripts(raw: string): string | undefined {
  const words = raw.normalize("NFKC").match(/[\p{L}\p{M}]+/gu) ?? [];
  const isMixed = (word: string) => LATIN.test(word) && LOOKALIKE_SCRIPT.test(word) && !SIGN.test(word);
  if (words.some(isMixed)) {
    return "has a word of more than one alphabet";
  }
  const latin = words.filter((word) => LATIN.test(word)).length;
  const spoofs = words.filter((word) => [...word].length > 2 && LOOKALIKES.test(word)).length;
  const foreign = words.filter((word) => LOOKALIKE_SCRIPT.test(word)).length;
  return spoofs > 0 && spoofs === foreign && latin > 0 ? "has letters that only look Latin" : undefined;
}

/**
 * Characters that look like those of markup. Some are also quotation marks in other languages; those count only if
 * they form a tag.
 */
const MARKUP_LOOKALIKES: Readonly<Record<string, string>> = {
  "‹": "<",
  "›": ">",
  "〈": "<",
  "〉": ">",
  "⟨": "<",
  "⟩": ">",
  "❮": "<",
  "❯": ">",
  "˂": "<",
  "˃": ">",
  ᐸ: "<",
  ᐳ: ">",
  "⁄": "/",
  "∕": "/",
  "⧸": "/",
  "═": "=",
  "꞊": "=",
  ˋ: "`",
  "∼": "~",
  "♯": "#",
};
const LOOKALIKE = new RegExp(`[${Object.keys(MARKUP_LOOKALIKES).join("")}]`, "gu");

const MARKUP: readonly (readonly [pattern: RegExp, message: string])[] = [
  [/<\s{0,3}[/!?%|]|[/?%|]\s{0,3}>|<\s{0,3}[a-z_][^<>]{0,80}>|[«《]\s{0,3}\//iu, "has a tag"],
  [/<!\[|\]\]>|<!--|-->/, "has a comment or a section of markup"],
  [/&(?:#\d{1,8}|#x[\da-f]{1,6}|[a-z]{2,8});/i, "has a character reference"],
  [/`{3,}|~{3,}|(?:` ?){3,}/, "has a code fence"],
  [/={3,}|-{3,}|_{3,}|\*{3,}|#{2,}|\+{4,}|\|{2,}/, "has a line of marks"],
  [/(?:^|[\n\r])[ \t>]{0,8}#{1,6}[ \t]/, "has a heading"],
  [/\]\s?\(|!\[|\[\[|\]\]|\{\{|\}\}|\$\{|\[\^/, "has a link or a placeholder of markup"],
  [/["']?\brole["']?\s{0,3}[:=]\s{0,3}["']|["']content["']\s{0,3}:/i, "has a message in JSON or YAML"],
  [/\[\/?inst\]|<<\/?sys>>|\bim_(?:start|end)\b|\bendoftext\b/i, "has a mark of a chat template"],
  [/\\(?:u[\da-f]{4}|x[\da-f]{2}|n|r)/i, "has an escape"],
];

/** The name of a chat's speaker before a colon, at the beginning of a sentence. */
const SPEAKER =
  /(?:^|[\n\r.!?;|>-]\s{0,3})[[(*#\s]{0,6}(?:system|assistant|user|human|developer|instructions?|ai|bot|(?:system|developer|ai) (?:note|message|notice|prompt)|note to (?:ai|model))[\])*\s]{0,6}:/i;

/** The fault of a text with markup that could pass for a delimiter or a message; undefined if there is none. */
export function suspectMarkup(plain: string): string | undefined {
  const text = plain.replace(LOOKALIKE, (character) => MARKUP_LOOKALIKES[character] ?? character);
  const found = MARKUP.find(([pattern]) => pattern.test(text));
  if (found !== undefined) {
    return found[1];
  }
  return SPEAKER.test(text) ? "has the name of a speaker before a colon, as in a chat" : undefined;
}

/** Common endings of domains. A name with another ending counts as a link only with a scheme or www. before it. */
const ENDINGS =
  "com|net|org|io|ai|app|dev|co|info|biz|xyz|shop|store|online|site|top|click|link|club|live|pro|de|fr|es|pt|it|nl|at|ch|uk|ie|in|jp|br|ru|cn|eu|us|ca|au|me|tv|ly|gg|to|cc|zip|mov|example|test|invalid|onion";
const HOST = "[\\p{L}\\p{N}](?:[\\p{L}\\p{N}-]{0,62})(?:\\.[\\p{L}\\p{N}-]{1,63}){0,6}";
const LINK = new RegExp(
  `\\b(?:h(?:tt|xx)ps?|ftp|wss?|data|javascript|mailto|file|tel):(?://)?(?:[^\\s/@]{0,64}@)?(${HOST})?|\\bwww\\.(${HOST})|(?<![\\p{L}\\p{N}.])(${HOST}\\.(?:${ENDINGS}))(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])`,
  "giu",
);
const ADDRESS = /(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/;
const HIDDEN =
  /\b[\p{L}\p{N}-]{2,63} ?(?:\[\.\]|\(\.\)|\{\.\}|\[dot\]|\(dot\)| dot ) ?(?:com|net|org|io|ru|co)\b/iu;
/** Frameworks whose names look like domains. */
const NAMES: ReadonlySet<string> = new Set(["asp.net", "ado.net", "vb.net", "socket.io"]);

/** The fault of a text with a link to another domain than the landing page's; undefined if there is none. */
export function foreignLink(text: string, landingHost: string): string | undefined {
  // Browsers read the East Asian full stop as a dot. Between Latin letters it doesn't end a sentence.
  const plain = text.replace(/(?<=[\p{Script=Latin}\d])\u3002(?=[\p{Script=Latin}\d])/gu, ".");
  // Most texts have nothing like a link, and this test is cheap.
  if (!/[.:]\S|\bdot\b/i.test(plain)) {
    return undefined;
  }
  if (ADDRESS.test(plain) || (/\bdot\b|[.][\])}]/i.test(plain) && HIDDEN.test(plain))) {
    return "has an address off the landing domain";
  }
  for (const [, withScheme, withWww, bare] of plain.matchAll(LINK)) {
    const host = (withScheme ?? withWww ?? bare ?? "").toLowerCase();
    if (!NAMES.has(host) && !isWithin(asciiDomain(host), bareHost(landingHost))) {
      return "has a link off the landing domain";
    }
  }
  return undefined;
}
