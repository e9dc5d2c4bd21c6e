/** What is found of an ad in the text of a turn, and when that contradicts the provider's verdict. */
import type { Verdict } from "@adrelay/contract";

/**
 * How a text mentions the product, as far as a reader sees it: not at all; by its name; with a link to its landing page's domain;
 * with a link to another domain. `unknown`: it wasn't found out.
 */
export const MENTIONS = ["none", "name", "link", "foreign", "unknown"] as const;
type Mention = (typeof MENTIONS)[number];

/** `isLabelled`: a mention is marked as an ad, for example by "Sponsored". */
export interface Finding {
  readonly mention: Mention;
  readonly isLabelled: boolean;
}

/** Nothing is known of the text. */
export const UNKNOWN_FINDING: Finding = { mention: "unknown", isLabelled: false };

/** What is known of an ad that was put into a prompt. */
export interface TurnAd {
  readonly productName: string;
  /** The landing page; undefined if the provider's answer doesn't tell. */
  readonly landingUrl: string | undefined;
}

/** Only these mentions can have a label: one that links elsewhere would speak for somebody else's page. */
const LABELLED_MENTIONS: readonly Mention[] = ["name", "link"];

/** All findings, as the ledger keeps and counts them: `mention,label`. */
export const FINDINGS: readonly string[] = MENTIONS.flatMap((mention) =>
  [true, false]
    .filter((isLabelled) => !isLabelled || LABELLED_MENTIONS.includes(mention))
    .map((isLabelled) => writeFinding({ mention, isLabelled })),
);

/** A finding as the ledger keeps it. */
export function writeFinding({ mention, isLabelled }: Finding): string {
  return `${mention},${isLabelled ? "yes" : "no"}`;
}

/** Undefined if there is none, or if a newer version wrote it. */
export function parseFinding(written: string | undefined): Finding | undefined {
  const [name, label] = written?.split(",") ?? [];
  const mention = MENTIONS.find((known) => known === name);
  return mention && { mention, isLabelled: label === "yes" };
}

/**
 * Whether the provider's verdict contradicts what was found. packages/store/src/delivery/settlement.lua does the same, and a test
 * compares the two.
 */
export function isDisagreement({ mention }: Pick<Finding, "mention">, verdict: Verdict | "unknown"): boolean {
  switch (mention) {
    case "none":
      return verdict === "ok";
    case "name":
    case "link":
    case "foreign":
      return verdict === "no_ad_used";
    case "unknown":
      return false;
    default:
      return mention satisfies never;
  }
}
