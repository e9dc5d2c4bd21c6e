import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { normalizable } from "@adrelay/core";
import { parse as parseYaml } from "yaml";
import { z } from "zod";

/** A topic that a phrase names. A strong phrase forbids an ad by itself; others are hints. */
export interface NamedTopic {
  readonly topic: string;
  readonly isStrong: boolean;
}

/** What people write about one topic, as parts of regular expressions over normalised text. */
interface TopicPatterns {
  readonly topic: string;
  readonly strong: PatternList;
  readonly hints: PatternList;
}

interface PatternList {
  /** Match whole words only. */
  readonly words: readonly string[];
  /** Match anywhere, for scripts without blanks between words. */
  readonly anywhere: readonly string[];
}

/** The patterns of all topics that are strong, or that are hints. */
interface PatternsOfKind {
  /** All of them in one, since most texts have no phrase. Beyond 20,000 characters V8 would search ten times as slowly. */
  readonly any: RegExp | undefined;
  readonly patterns: readonly { readonly named: NamedTopic; readonly pattern: RegExp }[];
}

/** Topics beside which an ad would be wrong. They are found by common phrases; hints and irony are not understood. */
export class SensitivePhrases {
  /** Strong patterns first. */
  readonly #kinds: readonly PatternsOfKind[];

  /** Throws a SyntaxError if a pattern is no regular expression. */
  constructor(topics: readonly TopicPatterns[]) {
    this.#kinds = (["strong", "hints"] as const).map((kind) => ({
      any: patternOf({
        words: topics.flatMap((patterns) => patterns[kind].words),
        anywhere: topics.flatMap((patterns) => patterns[kind].anywhere),
      }),
      patterns: topics.flatMap((patterns) => {
        const pattern = patternOf(patterns[kind]);
        const named = { topic: patterns.topic, isStrong: kind === "strong" };
        return pattern === undefined ? [] : [{ named, pattern }];
      }),
    }));
  }

  /** The first topic in a text, a strong one if there is any; undefined if there is none. */
  find(text: string): NamedTopic | undefined {
    const normal = normalise(text).slice(0, TEXT_CHARS_MAX);
    const found = this.#kinds.find(({ any }) => any?.test(normal) === true);
    return found?.patterns.find(({ pattern }) => pattern.test(normal))?.named;
  }
}

/** Normalising can turn one character into six. */
const TEXT_CHARS_MAX = 100_000;

/** Makes different ways to type the same text equal: width, case, quotes, blanks, invisible characters. */
function normalise(text: string): string {
  return normalizable(text)
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\u2018\u2019\u02bc`\u00b4]/g, "'")
    .replace(/\p{Cf}/gu, "")
    .replace(/[\s*_]+/gu, " ");
}

function patternOf({ words, anywhere }: PatternList): RegExp | undefined {
  const whole = `(?<![\\p{L}\\p{M}\\p{N}])(?:${words.join("|")})(?![\\p{L}\\p{M}\\p{N}])`;
  const all = [...(words.length === 0 ? [] : [whole]), ...anywhere];
  return all.length === 0 ? undefined : new RegExp(all.join("|"), "u");
}

const patterns = z.array(z.string().min(1)).default([]);
const patternList = z.strictObject({ words: patterns, anywhere: patterns }).prefault({});
const fileSchema = z.strictObject({
  lists: z.record(z.string(), z.array(z.string())),
  topics: z.record(z.string(), z.strictObject({ strong: patternList, hints: patternList })),
});

/** Reads a file of phrases. A faulty file is a bug, since the file is shipped: it throws. */
function loadPhrases(file: string): SensitivePhrases {
  const { lists, topics } = fileSchema.parse(parseYaml(readFileSync(file, "utf8")));
  const expand = (pattern: string) =>
    pattern.replace(/<([a-z]+)>/g, (written, name: string) => {
      const list = lists[name];
      return list === undefined ? written : `(?:${list.join("|")})`;
    });
  const expandAll = ({ words, anywhere }: PatternList) => ({ words: words.map(expand), anywhere });
  return new SensitivePhrases(
    Object.entries(topics).map(([topic, { strong, hints }]) => ({
      topic,
      strong: expandAll(strong),
      hints: expandAll(hints),
    })),
  );
}

const SHIPPED_PHRASES_FILE = fileURLToPath(new URL("../../catalog/sensitive-phrases.yaml", import.meta.url));

/** The phrases that are shipped beside the catalogue. */
export function loadShippedPhrases(): SensitivePhrases {
  return loadPhrases(SHIPPED_PHRASES_FILE);
}
