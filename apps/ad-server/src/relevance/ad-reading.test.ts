import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { SHIPPED_MODEL as model } from "../../testdata/shipped-model.ts";
import { type Ad, adSchema } from "../catalog/ad.ts";
import { adExplainer, readAd, readTextsOf } from "./ad-reading.ts";

const explain = adExplainer(model);
const adOf = (more: Partial<Ad>): Ad => ({ ...adSchema.parse(PLAIN_AD), category: "zq-17", ...more });

const TENT = adOf({ description: "A light two-person tent for hikers.", keywords: ["tent", "camping"] });

test("an invented name changes nothing of what an ad is read as", () => {
  const names = ["Quorvex 9", "Wineglass", "Dr. Grief", "ストレラ"];
  const readings = names.map((product_name) => readAd({ ...TENT, product_name }, model));
  expect(readings).toEqual(names.map(() => readings[0]));
});

test("the name counts if nothing else says what is sold", () => {
  const vague = adOf({ product_name: "Alpine Tent", description: "Simply good.", keywords: ["quality"] });
  const text = ({ needs }: ReturnType<typeof readTextsOf>) => [...needs];
  expect(text(readTextsOf(vague, model))).not.toEqual(
    text(readTextsOf({ ...vague, product_name: "Norvane" }, model)),
  );
});

test("a category that says what is sold counts as much as all texts together", () => {
  const more = { ...TENT, category: "hearing-aids" };
  const [one, other] = explain(more).needs;
  expect([one?.need, other?.need].toSorted()).toEqual(["hearing-aids", "hiking-gear"]);
  expect(one?.share).toBeLessThan(0.7);
});

test("an ad is explained by its likeliest needs with their shares", () => {
  const { clarity, isSensitive, needs } = explain(TENT);
  expect({ clarity, isSensitive }).toEqual({ clarity: "clear", isSensitive: false });
  expect(needs[0]).toEqual({ need: "hiking-gear", share: expect.any(Number) });
  expect(needs[0]?.share).toBeGreaterThan(0.5);
});

test("a funeral home's ad is sensitive", () => {
  const ad = adOf({ description: "Funerals arranged with care.", keywords: ["funeral", "burial"] });
  expect(explain(ad)).toMatchObject({ isSensitive: true });
});

/** A model of two needs that reads any text alike. */
const reading = (needs: readonly number[]) => ({
  needs: ["tents", "other"],
  read: () => ({
    needs: Float32Array.from(needs),
    none: 0,
    topics: new Map<string, number>(),
    meaning: new Float32Array(),
  }),
});

test.each([
  [[0.9, 0.1], "clear"],
  [[0.1, 0.9], "unknown"],
])("with the probabilities %j of a known need and of any other an ad is %s", (needs, clarity) => {
  expect(adExplainer(reading(needs))(TENT).clarity).toBe(clarity);
});

test("an ad that says nothing is unclear", () => {
  const even = { ...reading(Array.from({ length: 10 }, () => 0.1)), needs: [..."abcdefghij"] };
  expect(adExplainer(even)(TENT).clarity).toBe("unclear");
});
