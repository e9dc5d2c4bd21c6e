import { type InjectionRequest, injectionRequestSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { SHIPPED_MODEL } from "../../testdata/shipped-model.ts";
import { type Ad, adSchema } from "../catalog/ad.ts";
import { loadCatalog } from "../catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../config.ts";
import { type DecisionRules, decideInjection, loadPromptRules, rulesOfAds } from "./decide-injection.ts";

/** The labels of the prompts are right for the years 2026 and 2027. */
const NOW = { id: "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f", nowMs: Date.UTC(2026, 5, 1) };

const catalog = loadCatalog(SHIPPED_CATALOG_FILE);
const ads = catalog.kind === "ok" ? catalog.ads : [];
const promptRules = await loadPromptRules(SHIPPED_MODEL);
const rules: DecisionRules = {
  ...promptRules,
  ...(await rulesOfAds(ads, promptRules.model)),
  floorCpmMicros: 100_000,
};

function requestOf(prompt: string, context: object = {}): InjectionRequest {
  return injectionRequestSchema.parse({
    prompt,
    request_context: { session_id: "s", user_agent: "u", user_ip: "203.0.113.7" },
    optional_context: context,
  });
}

const decide = (prompt: string, context?: object) => decideInjection(requestOf(prompt, context), rules, NOW);

/** The ads that are offered for a prompt, best first. */
function adsFor(prompt: string, context?: object): Ad[] {
  const decision = decide(prompt, context);
  return decision.outcome === "auction" ? decision.offers.map(({ ad }) => ad) : [];
}

test("a wish to buy gets ads, and the most relevant one is of its category", () => {
  const prompt = "Which running shoes should I buy for my first marathon?";
  const offered = adsFor(prompt, { country: "US", age: 34 });
  expect(offered.map(({ category }) => category)).toContain("running-shoes");
  const [best] = rules.relevance.rank(rules.model.read(prompt));
  expect(best?.ad.category).toBe("running-shoes");
});

test("without a country only ads for every country are offered", () => {
  const offered = adsFor("Which running shoes should I buy for my first marathon?");
  expect(offered.map(({ id }) => id)).toContain("velmora-drift");
  expect(offered.filter(({ targeting }) => targeting.countries !== undefined)).toEqual([]);
});

test("a question with nothing to sell gets no ad", () => {
  expect(decide("What is the derivative of x squared times sine x?")).toEqual({ outcome: "no_fill" });
});

test("a wish beside a sentence that the model can't read gets no ad", () => {
  const prompt = "Which running shoes should I buy for my first marathon?";
  expect(decide(`Non voglio più vivere. ${prompt}`)).toEqual({ outcome: "no_fill" });
});

/** The ids of the ads that are offered for a prompt if some ads have other fields, and with one more ad. */
async function idsAmong(changed: Record<string, Partial<Ad>>, ...more: readonly Ad[]) {
  const all = [...ads.map((ad) => ({ ...ad, ...changed[ad.id] })), ...more];
  const changedRules = { ...rules, ...(await rulesOfAds(all, promptRules.model)) };
  return (prompt: string) => {
    const decision = decideInjection(requestOf(prompt, { country: "US", age: 34 }), changedRules, NOW);
    return decision.outcome === "auction" ? decision.offers.map(({ ad }) => ad.id) : [];
  };
}

test("an ad isn't offered for a prompt with one of its negative keywords", async () => {
  const idsFor = await idsAmong({ "stridewell-tempo": { negative_keywords: ["barefoot", "second hand"] } });
  const prompt = "Which running shoes should I buy for my first marathon?";
  expect(idsFor(prompt)).toContain("stridewell-tempo");
  const others = idsFor(`${prompt} I prefer second-hand ones.`);
  expect(others).toContain("velmora-drift");
  expect(others).not.toContain("stridewell-tempo");
});

test("an ad isn't offered for a prompt about one of its negative topics", async () => {
  const prompt = "Which running shoes should I buy for my first marathon?";
  const beside = await idsAmong({
    "stridewell-tempo": { negative_topics: ["mortgages", "payroll software"] },
  });
  expect(beside(prompt)).toContain("stridewell-tempo");
  const own = await idsAmong({ "stridewell-tempo": { negative_topics: ["mortgages", "running shoes"] } });
  expect(own(prompt)).toContain("velmora-drift");
  expect(own(prompt)).not.toContain("stridewell-tempo");
});

test("safety comes before relevance", () => {
  const decision = decide("I want to end my life tonight, which running shoes should I wear?");
  expect(decision).toEqual({ outcome: "rejected", topic: "self_harm" });
});

test.each([undefined, 16])("an age of %s gets no ad for adults", (age) => {
  const prompt = "which index fund or etf should i start investing in with my brokerage?";
  const context = { country: "US", ...(age === undefined ? {} : { age }) };
  expect(decide(prompt, context)).toEqual({ outcome: "no_fill" });
  expect(decide(prompt, { country: "US", age: 34 })).toMatchObject({ outcome: "auction" });
});

test("a prompt whose language can't be detected gets no ad", () => {
  expect(decide("42 !!! 🏃 ???", { country: "US", age: 34 })).toEqual({ outcome: "no_fill" });
});

test("an ad of a category with a made-up name is found by its texts", async () => {
  const guitar = adSchema.parse({
    ...PLAIN_AD,
    id: "guitar",
    product_name: "Oakstrum Six",
    category: "zq-17",
    description: "A steel-string acoustic guitar with a solid spruce top for beginners.",
    keywords: ["acoustic guitar", "beginner guitar"],
    bid_cpm_micros: 4_000_000,
  });
  const idsFor = await idsAmong({}, guitar);
  expect(idsFor("Which acoustic guitar should I buy for my daughter, who is a beginner?")).toContain(
    "guitar",
  );
  expect(idsFor("Who invented the acoustic guitar and in which century?")).toEqual([]);
});
