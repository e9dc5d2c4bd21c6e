import { expect, test, vi } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { SHIPPED_MODEL as model } from "../../testdata/shipped-model.ts";
import { type Ad, adSchema } from "../catalog/ad.ts";
import type { PromptModel, TextReading } from "../prompt-model/prompt-model.ts";
import { NeedRelevance } from "./need-relevance.ts";
import { SENSITIVE_NEEDS } from "./sensitive-ads.ts";

const SENSITIVE = "therapy";

/**
 * A model of four needs and `other`. The words of a text say what it is about: `shoes=.8 none=.1`. It reads the ads and the
 * prompts alike.
 */
const NEEDS = ["shoes", "tents", "wine", SENSITIVE, "other"];
const fakeModel: Pick<PromptModel, "needs" | "read"> = {
  needs: NEEDS,
  read(text) {
    const odds = new Map(
      Array.from(text.matchAll(/([a-z]+)=(\d?\.\d+)/g), ([, name, value]) => [name, Number(value)]),
    );
    const of = (name: string) => odds.get(name) ?? 0;
    const topics = new Map([["grief", of("grief")]]);
    const meaning = Float32Array.from(text.includes("red") ? [1, 0] : [0, 1]);
    return { needs: Float32Array.from(NEEDS, of), none: of("none"), topics, meaning } satisfies TextReading;
  },
};

const adOf = (id: string, description: string, more: Partial<Ad> = {}): Ad => ({
  ...adSchema.parse({ ...PLAIN_AD, id, description: description || "x", category: "zq-17", keywords: ["x"] }),
  ...more,
});

/** The ids of the ads that fit a prompt, best first. */
async function idsFor(ads: readonly Ad[], prompt: string) {
  const relevance = await NeedRelevance.build(ads, fakeModel);
  return relevance.rank(fakeModel.read(prompt)).map(({ ad }) => ad.id);
}

const SHOES = adOf("shoes", "shoes=.9 none=.1");
const WINE = adOf("wine", "wine=.9 none=.1");
const THERAPY = adOf("help", `${SENSITIVE}=.9 none=.1`);

test("an ad fits a prompt of the same need, whatever its category is called", async () => {
  expect(await idsFor([WINE, SHOES], "shoes=.8 none=.1")).toEqual(["shoes"]);
  expect(await idsFor([WINE, SHOES], "wine=.8 none=.1")).toEqual(["wine"]);
});

test("nothing fits a prompt that wants nothing or something else", async () => {
  expect(await idsFor([SHOES, WINE], "none=.9 shoes=.1")).toEqual([]);
  expect(await idsFor([SHOES, WINE], "tents=.9 none=.1")).toEqual([]);
  expect(await idsFor([SHOES, WINE], "")).toEqual([]);
  expect(await idsFor([], "shoes=.8 none=.1")).toEqual([]);
});

test("of two ads of the same need the one in the prompt's words comes first", async () => {
  const ads = [adOf("blue", "blue shoes=.9 none=.1"), adOf("red", "red shoes=.9 none=.1")];
  expect(await idsFor(ads, "red shoes=.8 none=.1")).toEqual(["red", "blue"]);
  expect(await idsFor(ads, "blue shoes=.8 none=.1")).toEqual(["blue", "red"]);
});

test("the score of an ad is at most 1 and above 0", async () => {
  const relevance = await NeedRelevance.build([SHOES], fakeModel);
  const [found] = relevance.rank(fakeModel.read("shoes=1.0"));
  expect(found?.score).toBeGreaterThan(0);
  expect(found?.score).toBeLessThanOrEqual(1);
});

test("a sensitive ad is shown only beside a prompt that wants just that", async () => {
  expect(await idsFor([THERAPY], `${SENSITIVE}=.99 none=.01`)).toEqual(["help"]);
  expect(await idsFor([THERAPY, SHOES], `${SENSITIVE}=.45 shoes=.5 none=.05`)).toEqual(["shoes"]);
  // For a harmless need the same share is enough.
  const tents = adOf("tents", "tents=.9 none=.1");
  expect(await idsFor([tents, SHOES], "tents=.45 shoes=.5 none=.05")).toContain("tents");
});

test("an ad whose text reads like a sensitive topic is sensitive too", async () => {
  const ads = [adOf("harmless", "tents=.9 none=.1"), adOf("grave", "tents=.8 grief=.15")];
  expect(await idsFor(ads, "tents=.45 shoes=.5 none=.05")).toEqual(["harmless"]);
});

test("each sensitive need is one that the shipped model knows", () => {
  expect([...SENSITIVE_NEEDS].filter((need) => !model.needs.includes(need))).toEqual([]);
});

/** Ads of things that the shipped catalogue doesn't sell, in categories that say nothing. */
const STRANGE = [
  [
    "Steel-string acoustic guitar with a solid spruce top.",
    "acoustic guitar",
    "Which acoustic guitar should I buy?",
  ],
  ["Tyres for winter, fitted at your home.", "winter tyres", "Where do I buy winter tyres for my car?"],
  [
    "Curtains and blinds made to measure.",
    "curtains, blinds",
    "I need new curtains for a big window, which ones?",
  ],
  [
    "Removal vans and movers by the hour.",
    "movers, removals",
    "Which moving company should I hire in Leeds?",
  ],
  ["Fresh flowers delivered the same day.", "flower delivery", "Can I order flowers for delivery tomorrow?"],
  [
    "Prescription glasses from 29, with home trial.",
    "glasses",
    "Where can I order prescription glasses online?",
  ],
] as const;

test("ads in categories with nonsense names are found by their texts", async () => {
  const ads = STRANGE.map(([description, keywords], index) =>
    adOf(`ad-${index}`, description, { category: `qx-${index}`, keywords: keywords.split(", ") }),
  );
  const relevance = await NeedRelevance.build(ads, model);
  const best = STRANGE.map(([, , prompt]) => {
    const [first] = relevance.rank(model.read(prompt));
    return first?.ad.id;
  });
  const right = best.filter((id, index) => id === `ad-${index}`);
  // All but two, so that a new fit of the model may lose some of them.
  expect(right.length, best.join(" ")).toBeGreaterThanOrEqual(STRANGE.length - 2);
});

test("a thousand ads are read in turns, so that other work goes on", async () => {
  const ads = Array.from({ length: 1_000 }, (_, index) => adOf(`ad-${index}`, "shoes=.9"));
  let turns = 0;
  const timer = setInterval(() => {
    turns += 1;
  }, 0);
  await NeedRelevance.build(ads, {
    ...fakeModel,
    read: (text) => {
      const until = performance.now() + 0.2;
      while (performance.now() < until);
      return fakeModel.read(text);
    },
  });
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
});

test("an ad of a need that the model doesn't know fits no prompt of such a need", async () => {
  expect(await idsFor([adOf("unknown", "other=.95 none=.05")], "other=.95 none=.05")).toEqual([]);
});

test("a catalogue that replaces another one reads only ads with new texts, and all of them at once", async () => {
  const ads = Array.from({ length: 3_000 }, (_, index) => adOf(`ad-${index}`, `shoes=.9 number ${index}`));
  let reads = 0;
  const counting = {
    ...fakeModel,
    read: (text: string) => {
      reads += 1;
      return fakeModel.read(text);
    },
  };
  const before = await NeedRelevance.build(ads, counting);
  // Of each ad the texts, and the name of its category.
  await vi.waitFor(() => expect(reads).toBe(2 * ads.length));
  const edited = ads.with(2_999, adOf("new", "wine=.9"));
  const after = await NeedRelevance.build(edited, counting, before);
  expect(reads).toBe(2 * ads.length + 2);
  const found = after.rank(fakeModel.read("wine=.95 none=.05"));
  expect(found.map(({ ad }) => ad.id)).toEqual(["new"]);
});

test("a long catalogue is served before all of it is read", async () => {
  const ads = Array.from({ length: 3_000 }, (_, index) => adOf(`ad-${index}`, `tents=.9 number ${index}`));
  const relevance = await NeedRelevance.build([SHOES, ...ads, WINE], fakeModel);
  const idsOf = (reading: string) => relevance.rank(fakeModel.read(reading)).map(({ ad }) => ad.id);
  expect(idsOf("shoes=.95 none=.05")).toEqual(["shoes"]);
  expect(idsOf("wine=.95 none=.05")).toEqual([]);
  await vi.waitFor(() => expect(idsOf("wine=.95 none=.05")).toEqual(["wine"]));
});
