/** A prompt's language is in its beginning; the work stays bounded. */
const SAMPLE_CHARS = 1000;
/** Code and markup are no language, and are mostly English to a detector. */
const NO_PROSE = /```[^`]*```|<[^<>]{1,200}>|https?:\S+/gu;

/** Languages that the prompt model reads. */
const READ_LANGUAGES: ReadonlySet<string> = new Set(["en", "de", "fr", "es", "pt", "hi", "ja"]);
/**
 * Short English prompts look like their neighbours to a detector ("stroller for twins" like Norwegian), but English is
 * then close behind; for Dutch, Danish or Italian of that length its score is at most three quarters.
 */
const ENGLISH_OF_BEST_MIN = 0.88;

/** Tells the language of prompts, ISO 639-1; undefined where it can't be judged: too short, mixed, no words. */
export type DetectLanguage = (prompt: string) => string | undefined;

/** Loads the detector's tables: about a third of a second. */
export async function loadLanguageDetector(): Promise<DetectLanguage> {
  const { eld } = await import("eld/small");
  const detector = eld.newInstance();
  return (prompt) => {
    const sample = prompt.slice(0, SAMPLE_CHARS);
    const prose = sample.replace(NO_PROSE, " ");
    const result = detector.detect(/\p{L}/u.test(prose) ? prose : sample);
    const isSure = result.isReliable() && result.language !== "";
    if (isSure && READ_LANGUAGES.has(result.language)) {
      return result.language;
    }
    const { en = 0, ...others } = result.getScores();
    const isNearlyEnglish = en > 0 && en >= ENGLISH_OF_BEST_MIN * Math.max(...Object.values(others));
    return isNearlyEnglish ? "en" : isSure ? result.language : undefined;
  };
}
