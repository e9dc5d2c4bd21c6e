import type { AdClarity, AdExplanation } from "../relevance/ad-reading.ts";
import type { Ad } from "./ad.ts";

/** An ad with what it is read as. */
export interface ExplainedAd extends AdExplanation {
  readonly id: string;
}

export function explainAds(ads: readonly Ad[], explain: (ad: Ad) => AdExplanation): ExplainedAd[] {
  return ads.map((ad) => ({ id: ad.id, ...explain(ad) }));
}

const NOTES = {
  clear: [],
  unclear: ["hardly ever found: the texts don't say clearly what is sold"],
  unknown: ["never found: the model knows no need for what is sold"],
} as const satisfies Record<AdClarity, readonly string[]>;
const SENSITIVE_NOTE = "sensitive: shown only if the prompt clearly wants just this";

/** One line for each ad: its id, its needs with their shares, and what keeps prompts from finding it. */
export function describeAds(explained: readonly ExplainedAd[]): string {
  const idChars = Math.max(0, ...explained.map(({ id }) => id.length));
  const lines = explained.map(({ id, needs, clarity, isSensitive }) => {
    const shares = needs.map(({ need, share }) => `${need} ${(100 * share).toFixed(0)} %`).join(", ");
    const notes = [...NOTES[clarity], ...(isSensitive ? [SENSITIVE_NOTE] : [])];
    return `${id.padEnd(idChars)}  ${[shares, ...notes].join("; ")}`;
  });
  return `${lines.join("\n")}\n`;
}
