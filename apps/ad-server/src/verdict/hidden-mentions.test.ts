import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { AD_LINKS, findAd, judgeAnswer } from "@adrelay/verdict";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadCatalog } from "../catalog/load-catalog.ts";

const lineSchema = z.strictObject({
  id: z.string(),
  ad: z.string(),
  language: z.string(),
  /** What hides the mention or the label, or doesn't. */
  kind: z.string(),
  /** Before the reading of hidden text was built, or after it. */
  written: z.enum(["before", "after"]),
  verdict: z.enum(["ok", "no_ad_used"]),
  disclosed: z.boolean().optional(),
  link: z.enum(AD_LINKS).optional(),
  text: z.string(),
});

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const catalog = loadCatalog(fileOf("../../catalog/catalog.yaml"));
const ads = new Map((catalog.kind === "ok" ? catalog.ads : []).map((ad) => [ad.id, ad]));
const lines = readFileSync(fileOf("../../testdata/hidden-mentions.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => lineSchema.parse(JSON.parse(line)));

/** Nothing that counts is visible: neither the mention nor, where there is one, its label or its link to the ad's page. */
const isHidden = ({ verdict, disclosed, kind }: (typeof lines)[number]) =>
  verdict === "no_ad_used" || (disclosed === false && !kind.startsWith("visible") && /label|link/.test(kind));

test("the set hides mentions in many ways and seven languages", () => {
  expect(lines.filter(isHidden)).toHaveLength(60);
  expect(new Set(lines.filter(isHidden).map(({ kind }) => kind)).size).toBeGreaterThanOrEqual(50);
  expect(new Set(lines.map(({ language }) => language)).size).toBe(7);
  expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
  expect(lines.filter(({ written }) => written === "after")).toHaveLength(45);
  expect(lines.every(({ ad }) => ads.has(ad))).toBe(true);
});

/**
 * Of the 45 answers that were written after the reading of hidden text was built, 43 were right at the first attempt.
 * The two others had a style sheet of their own, and a formula that leaves text blank.
 */
test.each(lines)("$id is judged as labelled: $kind", ({ ad: id, text, verdict, disclosed, link }) => {
  const ad = ads.get(id);
  const product = { productName: ad?.product_name ?? "", landingUrl: ad?.landing_url ?? "" };
  const judgment = judgeAnswer(text, { ...product, advertiser: ad?.advertiser ?? "" });
  expect(judgment).toMatchObject({
    verdict,
    ...(disclosed === undefined ? {} : { disclosed }),
    ...(link === undefined ? {} : { link }),
  });
  // The relay doesn't know the advertiser.
  const { mention, isLabelled } = findAd(text, product);
  expect(mention !== "none").toBe(verdict === "ok");
  if (disclosed !== undefined) {
    expect(isLabelled).toBe(disclosed);
  }
});
