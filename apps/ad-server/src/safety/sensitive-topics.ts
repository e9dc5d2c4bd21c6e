/** Long prompts are checked by their beginning and their end, so that the work stays bounded. */
const CHECKED_CHARS_MAX = 100_000;

/** How people write of one topic, as pieces of regular expressions over normalised text. */
export interface TopicPatterns {
  readonly topic: string;
  /** Match whole words only. */
  readonly words: readonly string[];
  /** For scripts that put no blanks between words. */
  readonly anywhere: readonly string[];
}

/**
 * Topics beside which an ad would be wrong. It knows what people commonly write: neither hints nor irony,
 * and not what a picture means.
 */
export class SensitiveTopics {
  readonly #topics: readonly { readonly topic: string; readonly pattern: RegExp }[];

  /** Throws a SyntaxError on a pattern that is no regular expression. */
  constructor(topics: readonly TopicPatterns[]) {
    this.#topics = topics.map((patterns) => ({ topic: patterns.topic, pattern: patternOf(patterns) }));
  }

  /** The first topic in a prompt; undefined if there is none. */
  find(prompt: string): string | undefined {
    // Twice: a single character may become eighteen.
    const text = boundedText(normalise(boundedText(prompt)));
    return this.#topics.find(({ pattern }) => pattern.test(text))?.topic;
  }
}

function boundedText(prompt: string): string {
  return prompt.length <= CHECKED_CHARS_MAX
    ? prompt
    : `${prompt.slice(0, CHECKED_CHARS_MAX / 2)}\n${prompt.slice(-CHECKED_CHARS_MAX / 2)}`;
}

/** One spelling for what keyboards spell in many ways: width, case, quotes, blanks, invisible characters. */
function normalise(text: string): string {
  return text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\u2018\u2019\u02bc`\u00b4]/g, "'")
    .replace(/\p{Cf}/gu, "")
    .replace(/[\s*_]+/gu, " ");
}

function patternOf({ words, anywhere }: TopicPatterns): RegExp {
  const whole = `(?<![\\p{L}\\p{M}\\p{N}])(?:${words.join("|")})(?![\\p{L}\\p{M}\\p{N}])`;
  return new RegExp([whole, ...anywhere].join("|"), "u");
}
