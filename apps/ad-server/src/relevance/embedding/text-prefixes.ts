import { z } from "zod";

/** What a text is to the model: what somebody says, or what is to be found by it. */
export type TextRole = "query" | "passage";
export type TextPrefixes = Readonly<Record<TextRole, string>>;

/**
 * - `model`: those that the model's own settings name, if any
 * - `e5`: those of the E5 family, whose exported folders often lack the settings
 * - `none`: none
 */
export const PREFIX_MODES = ["model", "e5", "none"] as const;
export type PrefixMode = (typeof PREFIX_MODES)[number];

const NO_PREFIXES = { query: "", passage: "" } as const;
const E5_PREFIXES = { query: "query: ", passage: "passage: " } as const;

/** The part of the model's settings that is read; it names what it wants before texts "prompts". */
const sentenceConfigSchema = z.object({ prompts: z.record(z.string(), z.string()).optional() });

/**
 * The words that the model wants before texts.
 *
 * @param sentenceConfig what the model's settings hold; undefined if it has none
 */
export function choosePrefixes(mode: PrefixMode, sentenceConfig: unknown): TextPrefixes {
  switch (mode) {
    case "none":
      return NO_PREFIXES;
    case "e5":
      return E5_PREFIXES;
    case "model": {
      const prompts = sentenceConfigSchema.safeParse(sentenceConfig).data?.prompts ?? {};
      return { query: prompts["query"] ?? "", passage: prompts["passage"] ?? prompts["document"] ?? "" };
    }
    default:
      return mode satisfies never;
  }
}
