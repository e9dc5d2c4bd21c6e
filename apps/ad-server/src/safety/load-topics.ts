import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { PromptSafety } from "./prompt-safety.ts";
import { SensitiveTopics } from "./sensitive-topics.ts";

const patterns = z.array(z.string().min(1));
const fileSchema = z.strictObject({
  lists: z.record(z.string(), z.array(z.string())),
  topics: z.record(z.string(), z.strictObject({ words: patterns.min(1), anywhere: patterns.default([]) })),
});

/** Reads the topics that are shipped beside the catalogue; it throws on a broken file, which is a bug. */
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

/** Safety by the topics that are shipped. */
export function loadShippedSafety(): PromptSafety {
  return new PromptSafety(loadTopics(SHIPPED_TOPICS_FILE));
}
