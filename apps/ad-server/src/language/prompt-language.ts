/** A prompt's language is in its beginning; the work stays bounded. */
const SAMPLE_CHARS = 2000;
/** Code and markup are no language, and are mostly English to a detector. */
const NO_PROSE = /```[^`]*```|<[^<>]{1,200}>|https?:\S+/gu;

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
    return result.isReliable() && result.language !== "" ? result.language : undefined;
  };
}
