/** Joiners belong to words of scripts that join, and to emoji. */
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

/** Characters that hide text or change how it reads; undefined if there are none. */
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

/** Alphabets whose letters look like Latin ones. */
const LOOKALIKE_SCRIPT =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}\p{Script=Deseret}]/u;
const LATIN = /\p{Script=Latin}/u;
/** µm, kΩ, Δt: signs of science, not spoofs. */
const SIGN = /^(?:[µμΔΩπαβγλσ]\p{Script=Latin}{0,2}|\p{Script=Latin}{1,2}[ΩμΔ])$/u;
/** Letters of Cyrillic and Greek that are drawn as Latin ones. */
const LOOKALIKES = /^[авекмнорстухіјѕԁԛԝһАВЕКМНОРСТУХІЈЅαεικνορτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/u;

/** Words that only look Latin: of two alphabets, or of lookalikes alone within a Latin text. */
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
