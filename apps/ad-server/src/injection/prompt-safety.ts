import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { PromptReading } from "../prompt-model/prompt-model.ts";

/**
 * A prompt gets no ad if the probability that an ad would be wrong is at least this. It is below a half on purpose:
 * an ad that isn't shown costs a fraction of a cent, but an ad beside someone's grief costs a publisher its users.
 */
const REJECT_MIN = 0.35;
/** The same, if a phrase of the topic list is in the prompt. */
const REJECT_MIN_NAMED = 0.1;

/** Judges whether any ad beside a prompt would be wrong, from the model's reading of it and from a list of phrases. */
export class PromptSafety {
  readonly #named: Pick<SensitiveTopics, "find">;

  constructor(named: Pick<SensitiveTopics, "find">) {
    this.#named = named;
  }

  /** The topic that forbids an ad; undefined if there is none. */
  find(prompt: string, { topics }: Pick<PromptReading, "topics">): string | undefined {
    const named = this.#named.find(prompt);
    const wrong = [...topics.values()].reduce((sum, probability) => sum + probability, 0);
    if (wrong < (named === undefined ? REJECT_MIN : REJECT_MIN_NAMED)) {
      return undefined;
    }
    return named ?? likeliest(topics);
  }
}

function likeliest(topics: ReadonlyMap<string, number>): string | undefined {
  return [...topics].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ["", 0] as const)[0];
}

/** Of a longer prompt only the beginning and the end are checked, so the work is bounded. */
const CHECKED_CHARS_MAX = 100_000;

/** What people write about one topic, as parts of regular expressions over normalised text. */
interface TopicPatterns {
  readonly topic: string;
  /** Match whole words only. */
  readonly words: readonly string[];
  /** Match anywhere, for scripts without blanks between words. */
  readonly anywhere: readonly string[];
}

/** Topics beside which an ad would be wrong. They are found by common phrases; hints and irony are not understood. */
class SensitiveTopics {
  readonly #topics: readonly { readonly topic: string; readonly pattern: RegExp }[];

  /** Throws a SyntaxError if a pattern is no regular expression. */
  constructor(topics: readonly TopicPatterns[]) {
    this.#topics = topics.map((patterns) => ({ topic: patterns.topic, pattern: patternOf(patterns) }));
  }

  /** The first topic in a prompt; undefined if there is none. */
  find(prompt: string): string | undefined {
    // Bounded twice: normalising can turn one character into eighteen.
    const text = boundedText(normalise(boundedText(prompt)));
    return this.#topics.find(({ pattern }) => pattern.test(text))?.topic;
  }
}

function boundedText(prompt: string): string {
  return prompt.length <= CHECKED_CHARS_MAX
    ? prompt
    : `${prompt.slice(0, CHECKED_CHARS_MAX / 2)}\n${prompt.slice(-CHECKED_CHARS_MAX / 2)}`;
}

/** Makes different ways to type the same text equal: width, case, quotes, blanks, invisible characters. */
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

const patterns = z.array(z.string().min(1));
const fileSchema = z.strictObject({
  lists: z.record(z.string(), z.array(z.string())),
  topics: z.record(z.string(), z.strictObject({ words: patterns.min(1), anywhere: patterns.default([]) })),
});

/** Reads a file of topics. A faulty file is a bug, since the file is shipped: it throws. */
export function loadTopics(file: string): SensitiveTopics {
  const { lists, topics } = fileSchema.parse(parseYaml(readFileSync(file, "utf8")));
  const expand = (pattern: string) =>
    pattern.replace(/<([a-z]+)>/g, (written, name: string) => {
      const list = lists[name];
      return list === undefined ? written : `(?:${list.join("|")})`;
    });
  return new SensitiveTopics(
    Object.entries(topics).map(([topic, { words, anywhere }]) => ({
      topic,
      words: words.map(expand),
      anywhere,
    })),
  );
}

const SHIPPED_TOPICS_FILE = fileURLToPath(new URL("../../catalog/sensitive-topics.yaml", import.meta.url));

/** Safety with the topics that are shipped beside the catalogue. */
export function loadShippedSafety(): PromptSafety {
  return new PromptSafety(loadTopics(SHIPPED_TOPICS_FILE));
}
