import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import { z } from "zod";

const SHIPPED = fileURLToPath(new URL("../../apps/ad-server/catalog/catalog.yaml", import.meta.url));
const WORDS = [
  "light",
  "sturdy",
  "quiet",
  "modern",
  "classic",
  "handy",
  "warm",
  "smart",
  "fresh",
  "bright",
  "swift",
];

const shippedSchema = z.array(
  z.looseObject({
    id: z.string(),
    product_name: z.string(),
    description: z.string(),
    keywords: z.array(z.coerce.string()),
    bid_cpm_micros: z.number(),
  }),
);

/** Writes a catalogue of so many ads: those that are shipped, over and over, each with words and a bid of its own. */
export function writeManyAds(file: string, count: number): void {
  const shipped = shippedSchema.parse(parse(readFileSync(SHIPPED, "utf8")));
  const ads = Array.from({ length: count }, (_, index) => {
    const ad = shipped[index % shipped.length];
    const [word, other] = [WORDS[index % WORDS.length], WORDS[(index * 7) % WORDS.length]];
    return {
      ...ad,
      id: `${ad?.id}-${index}`,
      product_name: `${ad?.product_name} ${index}`,
      description: `${ad?.description} A ${word} and ${other} choice.`,
      keywords: [...(ad?.keywords ?? []), `${word} ${ad?.keywords[0]}`],
      bid_cpm_micros: Math.round((ad?.bid_cpm_micros ?? 0) * (0.5 + (index % 100) / 100)),
    };
  });
  writeFileSync(file, stringify(ads));
}
