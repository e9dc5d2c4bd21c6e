import type { TurnAd } from "@adrelay/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findAd } from "./find-ad.ts";
import { mayMention } from "./may-mention.ts";

const DRIFT = { productName: "Velmora Drift 2", landingUrl: "https://www.velmora-shoes.example/drift" };

test.each([
  "A good shoe for a first marathon is soft.",
  "**First**, try it on – “soft” isn't _light_… 👟\n\n1. Été à Köln\n2. `code`\n",
  "Velocity drifts.",
])("%j doesn't mention the ad", (text) => {
  expect(mayMention(text, DRIFT)).toBe(false);
  expect(findAd(text, DRIFT).mention).toBe("none");
});

test.each([
  ["a name of short words or other letters", { productName: "Yx 2", landingUrl: undefined }],
  ["a name in another script", { productName: "वेलमोरा जूते", landingUrl: undefined }],
  ["a page in another script", { productName: "Velmora", landingUrl: "https://köln.example/" }],
  ["a page at an address of numbers", { productName: "Velmora", landingUrl: "http://127.0.0.1/" }],
])("%s is always searched for", (_, ad) => {
  expect(mayMention("A good shoe.", ad)).toBe(true);
});

/** What models write around and between letters. */
const BETWEEN = [
  ..."*_~`\\ \n-\u00ad\u200b™®<>&[](){}#|.:/@²!'",
  "+",
  "\\.",
  "(ad)",
  "#ad ",
  "**",
  "</b>",
  "<b>",
  "<!-- x -->",
  "&amp;",
  "&#109;",
  "&shy;",
  "[1]",
  "[a](b)",
  "](x)",
  "\n> ",
  "-\n",
  "\r\n",
  "\n\n",
  "<think>x</think>",
  '{"name":"x","arguments":{}}',
  "◁think▷",
  "www.",
  "https://",
  " Drift ",
  "é",
  "ﬁ",
  "ℹ",
  "Ⅱ",
  "ｖ",
  "𝐕",
  "ß",
  "ı",
];
const PIECES = [
  ..."velmoradrift2".toUpperCase(),
  ..."velmoradrift2",
  "Velmora",
  "Vel",
  "mora",
  "Drift",
  "Véĺmörå",
  "velmora-shoes",
  ".example",
  "/drift",
  "two",
  "from",
  "is",
  "\u2028",
  "good",
  "。",
];

describe("a text that the search says mentions the ad may mention it", () => {
  test.each([
    "Velmora Drift 2",
    "VELMORA-DRIFT II!",
    "Vel Mora Drift two is good",
    "the Drift from Velmora",
    "**Vel**mora Drift 2",
    "Vel<b>mora</b> Drift 2",
    "Vel&#109;ora Drift 2",
    "[Vel](https://x.example)mora Drift 2",
    "Vel™mora Drift 2",
    'Vel{"name":"x","arguments":{}}mora Drift 2',
    "ＶＥＬＭＯＲＡ Drift 2",
    "velmora-shoes.example",
    "velmora-**shoes**.example/drift",
    "https://shop.velmora-shoes.example/drift",
  ])("%j", (text) => {
    expect(mayMention(text, DRIFT)).toBe(true);
  });

  /** Ads, and texts that mention them. */
  const MENTIONED: readonly (readonly [ad: TurnAd, texts: readonly string[]])[] = [
    [DRIFT, ["Velmora Drift 2", "velmora-shoes.example", "the Drift from Velmora"]],
    [{ productName: "Vitaplus", landingUrl: undefined }, ["Vitaplus", "Vita+ is good"]],
    [
      { productName: "Drift Two Shoe", landingUrl: "https://shop.velmora.example/x" },
      ["Drift Two Shoe", "www.velmora.example", "https://velmora.example/"],
    ],
    [{ productName: "Mint (Ad) App", landingUrl: undefined }, ["Mint (Ad) App", "mint #ad app"]],
    [
      { productName: "Silk & Fox Boots", landingUrl: "https://silkfox.example" },
      ["Silk and Fox Boots", "silkfox.example"],
    ],
  ];

  test("of any text made of parts of it", () => {
    let mentions = 0;
    const between = fc.constantFrom(...BETWEEN);
    /** The text of a mention, with something put in at two places. */
    const disturbed = (texts: readonly string[]) =>
      fc
        .tuple(fc.constantFrom(...texts), fc.nat(24), between, fc.nat(24), fc.constantFrom("", ...BETWEEN))
        .map(([text, at, one, later, other]) => {
          const first = `${text.slice(0, at)}${one}${text.slice(at)}`;
          return `${first.slice(0, later)}${other}${first.slice(later)}`;
        });
    const assembled = (texts: readonly string[]) => {
      const parts = fc.oneof(
        fc.constantFrom(...texts.flatMap((text) => [...text, ...text.split(" ")])),
        fc.constantFrom(...PIECES, ...texts),
        between,
      );
      return fc.array(parts, { maxLength: 20 }).map((all) => all.join(""));
    };
    const cases = fc
      .constantFrom(...MENTIONED)
      .chain(([ad, texts]) =>
        fc.record({ ad: fc.constant(ad), text: fc.oneof(assembled(texts), disturbed(texts)) }),
      );
    fc.assert(
      fc.property(cases, ({ ad, text }) => {
        const isMention = findAd(text, ad).mention !== "none";
        mentions += Number(isMention);
        return !isMention || mayMention(text, ad);
      }),
      { numRuns: 3000 },
    );
    expect(mentions).toBeGreaterThan(300);
  });
});
