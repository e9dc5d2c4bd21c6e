import { expect, test } from "vitest";
import { adSchema } from "../catalog/ad.ts";
import { KeywordIndex } from "./keyword-index.ts";
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

function finderOf(...ads: ReturnType<typeof makeAd>[]) {
  const index = new KeywordIndex(new TermReader());
  index.add(ads);
  return (prompt: string) => [...index.find(prompt)].map(({ id }) => id);
}

test.each([
  ["Which electric kettles are quiet?", ["kettle"]],
  ["A kettle that is electric", ["kettle"]],
  ["kitchen kettles, please", ["kettle"]],
  ["Is the Zarvo Boil any good?", ["kettle"]],
  ["Electric bikes. A kettle.", []],
  ["boil", []],
  ["", []],
])("the ads found by their keywords in %j are %j", (prompt, ids) => {
  expect(finderOf(makeAd({}))(prompt)).toEqual(ids);
});

test("ads with the same keyword are all found, each once", () => {
  const find = finderOf(makeAd({}), makeAd({ id: "other" }), makeAd({ id: "pot", keywords: ["tea pot"] }));
  expect(find("An electric kettle. A kitchen kettle. An electric kettle, and a Zarvo Boil!")).toEqual([
    "kettle",
    "other",
    "pot",
  ]);
});

test("ten thousand ads with one keyword are found in a prompt of many sentences in time", () => {
  // Both would take minutes if each ad had its own copy of the phrase.
  const ads = Array.from({ length: 10_000 }, (_, n) => makeAd({ id: `kettle-${n}` }));
  const find = finderOf(...ads);
  expect(find("I want an electric kettle. ".repeat(20_000))).toHaveLength(10_000);
});
