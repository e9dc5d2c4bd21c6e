import { type InjectionRequest, injectionRequestSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { adSchema } from "../catalog/ad.ts";
import { loadCatalog } from "../catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../config.ts";
import { LexicalRelevance } from "../relevance/lexical-relevance.ts";
import { NegativeKeywords } from "../relevance/negative-keywords.ts";
import { type DecisionRules, decideInjection, loadPromptRules } from "./decide-injection.ts";

/** The labels of the prompts are right for the years 2026 and 2027. */
const NOW = { id: "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f", nowMs: Date.UTC(2026, 5, 1) };

const catalog = loadCatalog(SHIPPED_CATALOG_FILE);
const ads = catalog.kind === "ok" ? catalog.ads : [];
const promptRules = await loadPromptRules();
const rules: DecisionRules = {
  ...promptRules,
  relevance: await LexicalRelevance.build(ads, promptRules.model),
  negativeKeywords: NegativeKeywords.of(ads),
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

test("a wish to buy gets an ad of its category", async () => {
  const decision = await decide("Which running shoes should I buy for my first marathon?", {
    country: "US",
    age: 34,
  });
  expect(decision).toMatchObject({ outcome: "auction", offers: [{ ad: { category: "running-shoes" } }, {}] });
});

test("without a country only ads for every country are offered", async () => {
  const decision = await decide("Which running shoes should I buy for my first marathon?");
  expect(decision).toMatchObject({ outcome: "auction", offers: [{ ad: { id: "velmora-drift" } }] });
});

test("a question with nothing to sell gets no ad", async () => {
  expect(await decide("What is the derivative of x squared times sine x?")).toEqual({ outcome: "no_fill" });
});

test("an ad isn't offered for a prompt with one of its negative keywords", async () => {
  const picky = ads.map((ad) =>
    ad.id === "stridewell-tempo" ? { ...ad, negative_keywords: ["barefoot", "second hand"] } : ad,
  );
  const relevance = await LexicalRelevance.build(picky, promptRules.model);
  const pickyRules = { ...rules, relevance, negativeKeywords: NegativeKeywords.of(picky) };
  const idsFor = async (prompt: string) => {
    const decision = await decideInjection(requestOf(prompt, { country: "US", age: 34 }), pickyRules, NOW);
    return decision.outcome === "auction" ? decision.offers.map(({ ad }) => ad.id) : [];
  };
  const prompt = "Which running shoes should I buy for my first marathon?";
  expect(await idsFor(prompt)).toEqual(["stridewell-tempo", "velmora-drift"]);
  expect(await idsFor(`${prompt} I prefer second-hand ones.`)).toEqual(["velmora-drift"]);
});

test("safety comes before relevance", async () => {
  const decision = await decide("I want to end my life tonight, which running shoes should I wear?");
  expect(decision).toEqual({ outcome: "rejected", topic: "self_harm" });
});

test.each([undefined, 16])("an age of %s gets no ad for adults", async (age) => {
  const prompt = "which index fund or etf should i start investing in with my brokerage?";
  const context = { country: "US", ...(age === undefined ? {} : { age }) };
  expect(await decide(prompt, context)).toEqual({ outcome: "no_fill" });
  expect(await decide(prompt, { country: "US", age: 34 })).toMatchObject({ outcome: "auction" });
});

test("a prompt whose language can't be detected gets no ad", async () => {
  expect(await decide("42 !!! 🏃 ???", { country: "US", age: 34 })).toEqual({ outcome: "no_fill" });
});

test("an ad of a category that the model wasn't fitted to is found by its keywords", async () => {
  const guitar = {
    ...ads[0],
    id: "guitar",
    category: "guitars",
    keywords: ["acoustic guitar"],
    targeting: {},
  };
  const withGuitar = [...ads, adSchema.parse({ ...guitar, product_name: "Oakstrum Six" })];
  const relevance = await LexicalRelevance.build(withGuitar, promptRules.model);
  const decideAmong = (prompt: string) => decideInjection(requestOf(prompt), { ...rules, relevance }, NOW);
  expect(await decideAmong("which acoustic guitar should i buy for my daughter, up to 300?")).toMatchObject({
    outcome: "auction",
    offers: [{ ad: { id: "guitar" } }],
  });
  expect(await decideAmong("who invented the acoustic guitar and in which century?")).toEqual({
    outcome: "no_fill",
  });
});
