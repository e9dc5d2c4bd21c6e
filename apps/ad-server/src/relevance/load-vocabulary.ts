import { readFileSync } from "node:fs";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import type { Vocabulary } from "./bm25-relevance.ts";

/** Category to language to phrases. */
const vocabularySchema = z.record(z.string(), z.record(z.string(), z.array(z.string().min(1))));

/** Reads the vocabulary that is shipped beside the catalogue; it throws on a broken one, which is a bug. */
export function loadVocabulary(file: string): Vocabulary {
  const categories = vocabularySchema.parse(parseYaml(readFileSync(file, "utf8")));
  return new Map(
    Object.entries(categories).map(([category, languages]) => [category, Object.values(languages).flat()]),
  );
}
