import { expect, test } from "vitest";
import { adSchema } from "../catalog/ad.ts";
import { KeywordAnchors } from "./keyword-anchors.ts";
import { TermReader } from "./terms.ts";

const makeAd = (fields: object) =>
  adSchema.parse({
    id: "kettle",
    product_name: "Zarvo Boil",
    advertiser: "zarvo",
    category: "kitchen-kettles",
    description: "A kettle.",
    keywords: ["electric kettle", "where to boil"],
    landing_url: "https://zarvo.example/",
    bid_cpm_micros: 1,
    budget_micros: 1,
    ...fields,
  });

function anchorsOf(...ads: ReturnType<typeof makeAd>[]) {
  const anchors = new KeywordAnchors(new TermReader());
  anchors.add(ads);
  return (prompt: string) => [...anchors.find(prompt)].map(({ id }) => id);
}

test.each([
  ["Which electric kettles are quiet?", ["kettle"]],
  ["A kettle that is electric", ["kettle"]],
  ["kitchen kettles, please", ["kettle"]],
  ["Is the Zarvo Boil any good?", ["kettle"]],
  ["Electric bikes. A kettle.", []],
  ["boil", []],
  ["", []],
])("in %j the anchored ads are %j", (prompt, ids) => {
  expect(anchorsOf(makeAd({}))(prompt)).toEqual(ids);
});

test("ads that say the same are all found, each once", () => {
  const find = anchorsOf(makeAd({}), makeAd({ id: "other" }), makeAd({ id: "pot", keywords: ["tea pot"] }));
  expect(find("An electric kettle. A kitchen kettle. An electric kettle, and a Zarvo Boil!")).toEqual([
    "kettle",
    "other",
    "pot",
  ]);
});

test("ten thousand ads of one keyword are taken in, and found in a prompt of many sentences", () => {
  // Each would take minutes if a phrase were kept or looked for once an ad.
  const ads = Array.from({ length: 10_000 }, (_, n) => makeAd({ id: `kettle-${n}` }));
  const find = anchorsOf(...ads);
  expect(find("I want an electric kettle. ".repeat(20_000))).toHaveLength(10_000);
});
