import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type InjectionRequest, injectionRequestSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { z } from "zod";
import { loadCatalog } from "../catalog/load-catalog.ts";
import { Bm25Relevance } from "../relevance/bm25-relevance.ts";
import { loadVocabulary } from "../relevance/load-vocabulary.ts";
import { loadTopics } from "../safety/load-topics.ts";
import { decideInjection } from "./decide-injection.ts";

/** The labels of the prompts hold for the years 2026 and 2027. */
const NOW_MS = Date.UTC(2026, 5, 1);

const labelledSchema = z.object({
  id: z.string(),
  prompt: z.string(),
  country: z.string().optional(),
  age: z.int().optional(),
  gender: z.string().optional(),
  expect: z.enum(["fill", "no_fill", "reject"]),
  categories: z.array(z.string()),
});

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const catalog = loadCatalog(fileOf("../../catalog/catalog.yaml"));
const topics = loadTopics(fileOf("../../catalog/sensitive-topics.yaml"));
const relevance = new Bm25Relevance(
  catalog.kind === "ok" ? catalog.ads : [],
  loadVocabulary(fileOf("../../catalog/vocabulary.yaml")),
);

function requestOf(prompt: string, context: object = {}): InjectionRequest {
  return injectionRequestSchema.parse({
    prompt,
    request_context: { session_id: "s", user_agent: "u", user_ip: "203.0.113.7" },
    optional_context: context,
  });
}

const decide = (prompt: string, context?: object) =>
  decideInjection(requestOf(prompt, context), { topics, relevance, floorCpmMicros: 100_000 }, NOW_MS);

test("a wish to buy gets an ad of its category", () => {
  const decision = decide("Which running shoes should I buy for my first marathon?", {
    country: "US",
    age: 34,
  });
  expect(decision).toMatchObject({ outcome: "auction", offers: [{ ad: { category: "running-shoes" } }, {}] });
});

test("without a country only ads for everywhere are left", () => {
  const decision = decide("Which running shoes should I buy for my first marathon?");
  expect(decision).toMatchObject({ outcome: "auction", offers: [{ ad: { id: "velmora-drift" } }] });
});

test("a question with nothing to sell gets no ad", () => {
  expect(decide("What is the derivative of x squared times sine x?")).toEqual({ outcome: "no_fill" });
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

test("the labelled prompts come out as well as they did: a floor, not a goal", () => {
  const lines = readFileSync(fileOf("../../testdata/prompts-dev.jsonl"), "utf8").trim().split("\n");
  const tally = { fill: 0, no_fill: 0, reject: 0, wrongAd: 0, adInsteadOfReject: 0 };
  for (const line of lines) {
    const {
      prompt,
      expect: expected,
      categories,
      country,
      age,
      gender,
    } = labelledSchema.parse(JSON.parse(line));
    const decision = decide(prompt, { country, age, gender });
    if (decision.outcome === "auction") {
      tally.fill += categories.includes(decision.offers[0].ad.category) ? 1 : 0;
      tally.wrongAd += categories.includes(decision.offers[0].ad.category) ? 0 : 1;
      tally.adInsteadOfReject += expected === "reject" ? 1 : 0;
    } else if (decision.outcome === (expected === "reject" ? "rejected" : expected)) {
      tally[expected] += 1;
    }
  }
  expect(tally.adInsteadOfReject).toBe(0);
  expect(tally.wrongAd).toBe(0);
  expect(tally.reject).toBeGreaterThanOrEqual(14);
  expect(tally.no_fill).toBeGreaterThanOrEqual(27);
  expect(tally.fill).toBeGreaterThanOrEqual(24);
});
