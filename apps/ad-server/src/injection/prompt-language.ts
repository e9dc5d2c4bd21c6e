/** Only the beginning of a prompt is looked at, so the work is bounded. */
const SAMPLE_CHARS = 1000;
/** A detector mistakes code, markup and URLs for English. */
const NO_PROSE = /```[^`]*```|<[^<>]{1,200}>|https?:\S+/gu;

/** Languages that the prompt model was fitted to. */
export const MODEL_LANGUAGES: ReadonlySet<string> = new Set(["en", "de", "fr", "es", "pt", "hi", "ja"]);
/**
 * To a detector a short English prompt may look like a similar language: "stroller for twins" like Norwegian. But then
 * the score of English is close to the best. For short Dutch, Danish or Italian prompts it is at most three quarters.
 */
const ENGLISH_OF_BEST_MIN = 0.88;

/**
 * Detects the language of a prompt (ISO 639-1). Undefined if it can't: the prompt is too short, mixed or has no
 * words.
 */
export type DetectLanguage = (prompt: string) => string | undefined;

/** Gives each language (ISO 639-1) that a text may be in a score; the higher, the likelier. */
export type ScoreLanguages = (text: string) => ReadonlyMap<string, number>;

/** A text without code, markup and URLs. */
export function withoutCode(text: string): string {
  return text.replace(NO_PROSE, " ");
}

export async function loadLanguageScores(): Promise<ScoreLanguages> {
  const { eld } = await import("eld/small");
  const detector = eld.newInstance();
  return (text) => new Map(Object.entries(detector.detect(text).getScores()));
}

/** Loads the detector's tables, which takes about a third of a second. */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import("eld/small");
  const detector = eld.newInstance();
  return (prompt) => {
    const sample = prompt.slice(0, SAMPLE_CHARS);
    const prose = withoutCode(sample);
    const result = detector.detect(/\p{L}/u.test(prose) ? prose : sample);
    const isSure = result.isReliable() && result.language !== "";
    if (isSure && MODEL_LANGUAGES.has(result.language)) {
      return result.language;
    }
    const { en = 0, ...others } = result.getScores();
    const isNearlyEnglish = en > 0 && en >= ENGLISH_OF_BEST_MIN * Math.max(...Object.values(others));
    return isNearlyEnglish ? "en" : isSure ? result.language : undefined;
  };
}
