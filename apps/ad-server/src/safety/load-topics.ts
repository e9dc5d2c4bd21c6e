import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
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
