/** What is found of an ad in a text by one that knows only the product's name and perhaps its page, as the relay does. */
import { type Finding, type TurnAd, UNKNOWN_FINDING } from "@adrelay/core";
import { bareHost } from "./domains.ts";
import { type Judgment, judgeAnswer } from "./judge-answer.ts";
import { type AdvertisedProduct, type NamePatterns, namePatterns } from "./name-patterns.ts";
import { SEARCHED_CHARS_MAX } from "./searched-chars.ts";

/** An ad, ready to be looked for in any number of texts. */
export interface SoughtAd {
  readonly product: AdvertisedProduct;
  readonly patterns: NamePatterns;
}

export function soughtAdOf({ productName, landingUrl = "" }: TurnAd): SoughtAd {
  const product = { productName, advertiser: makerOf(landingUrl), landingUrl };
  return { product, patterns: namePatterns(product) };
}

/** Judges as the ad server does. In a longer text, an ad that doesn't stand in its beginning is unknown. */
export function findAd(text: string, ad: TurnAd): Finding {
  return findSoughtAd(text, soughtAdOf(ad));
}

/** The same for an ad that is looked for in many texts. */
export function findSoughtAd(text: string, { product, patterns }: SoughtAd): Finding {
  const judgment = judgeAnswer(text.slice(0, SEARCHED_CHARS_MAX), product, patterns);
  return judgment.verdict === "no_ad_used" && text.length > SEARCHED_CHARS_MAX
    ? UNKNOWN_FINDING
    : findingOf(judgment);
}

function findingOf(judgment: Judgment): Finding {
  if (judgment.verdict === "no_ad_used") {
    return { mention: "none", isLabelled: false };
  }
  const { link, disclosed: isLabelled } = judgment;
  switch (link) {
    case "landing":
      return { mention: "link", isLabelled };
    case "foreign":
      return { mention: "foreign", isLabelled };
    case "none":
      return { mention: "name", isLabelled };
    default:
      return link satisfies never;
  }
}

/**
 * The maker, whom an answer may name apart from the product: "the Tempo 3 from Stridewell". The provider doesn't say who it is,
 * but its page usually has its name: the longest part of the host before the last dot. A wrong one only leaves paraphrases unfound.
 */
function makerOf(landingUrl: string): string {
  const parts = bareHost(URL.parse(landingUrl)?.hostname ?? "")
    .split(".")
    .slice(0, -1);
  return parts.reduce((longest, part) => (part.length > longest.length ? part : longest), "");
}
