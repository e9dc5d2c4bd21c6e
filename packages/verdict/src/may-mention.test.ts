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

  test("of any text made of parts of it", () => {
    let mentions = 0;
    const part = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...PIECES) },
      { weight: 2, arbitrary: fc.constantFrom(...BETWEEN) },
      { weight: 3, arbitrary: fc.constantFrom("Velmora", "Drift", "2", " ") },
    );
    /** The name, or the address, with something put in somewhere. */
    const disturbed = fc
      .tuple(
        fc.constantFrom("Velmora Drift 2", "velmora-shoes.example", "the Drift from Velmora"),
        fc.nat(24),
        fc.constantFrom(...BETWEEN),
      )
      .map(([name, at, between]) => `${name.slice(0, at)}${between}${name.slice(at)}`);
    const texts = fc.oneof(
      fc.array(part, { maxLength: 20 }).map((parts) => parts.join("")),
      disturbed,
    );
    fc.assert(
      fc.property(texts, (text) => {
        const isMention = findAd(text, DRIFT).mention !== "none";
        mentions += Number(isMention);
        return !isMention || mayMention(text, DRIFT);
      }),
      { numRuns: 2000 },
    );
    expect(mentions).toBeGreaterThan(200);
  });
});
