/** Ads ranked by a real model; the prompts' readings are made up. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { type Ad, adSchema } from "../src/catalog/ad.ts";
import { type Embedder, EmbeddingPool, type EmbedResult } from "../src/relevance/embedding/embedding-pool.ts";
import { EmbeddingRelevance, REFERENCE_TEXTS } from "../src/relevance/embedding/embedding-relevance.ts";
import type { Question } from "../src/relevance/relevance.ts";
import { makeFolder, writeTinyModel } from "./tiny-embedding-model.ts";

const silent = pino({ level: "silent" });

const adOf = (id: string, category: string, description: string): Ad =>
  adSchema.parse({
    id,
    product_name: id,
    advertiser: id,
    category,
    description,
    keywords: ["x"],
    landing_url: `https://${id}.example/`,
    bid_cpm_micros: 1_000_000,
    budget_micros: 1_000_000,
  });
const SHOES = adOf("velmora", "running-shoes", "Running shoes.");
const MIXED = adOf("stridewell", "running-shoes", "Running shoes for a marathon, with insurance.");
const POLICY = adOf("covera", "insurance", "Insurance policy.");
const GUITAR = adOf("oakstrum", "guitars", "An acoustic guitar.");
const ADS = [POLICY, MIXED, SHOES, GUITAR];

/** A prompt as the prompt model might read it: shares of the known categories, of other wishes, and of none. */
function questionOf(prompt: string, needs: Record<string, number>, otherNeed = 0, none = 0.1): Question {
  const reading = {
    needs: new Map(Object.entries(needs)),
    otherNeed,
    none,
    topics: new Map(),
    meaning: new Float32Array(),
  };
  return { prompt, language: "en", reading };
}

/** Counts what the real embedder is asked, and lets a test refuse. */
class CountedEmbedder implements Embedder {
  readonly modelId: string;
  readonly dimensions: number;
  calls = 0;
  refusal: EmbedResult | undefined;
  readonly #embedder: Embedder;

  constructor(embedder: Embedder) {
    this.#embedder = embedder;
    this.modelId = embedder.modelId;
    this.dimensions = embedder.dimensions;
  }

  async embed(...call: Parameters<Embedder["embed"]>): Promise<EmbedResult> {
    this.calls += 1;
    return this.refusal ?? this.#embedder.embed(...call);
  }
}

const modelFolder = mkdtempSync(join(tmpdir(), "adrelay-embedding-"));
writeTinyModel(modelFolder);
const pool = await EmbeddingPool.open(
  { folder: modelFolder, prefixes: "e5", tokensMax: 64, threads: 1 },
  silent,
);
afterAll(async () => {
  await pool.stop();
  rmSync(modelFolder, { recursive: true, force: true });
});

function setup() {
  const embedder = new CountedEmbedder(pool);
  const folder = join(makeFolder(), "embeddings");
  const refused: string[] = [];
  const index = (ads: readonly Ad[]) =>
    EmbeddingRelevance.of(ads, {
      cache: { embedder, folder, log: silent },
      knownCategories: ["running-shoes", "insurance"],
      languages: ["en"],
      otherLanguages: { rank: async () => [{ ad: POLICY, score: 0.25 }] },
      timeoutMs: 20_000,
      onRefused: (reason) => refused.push(reason),
    });
  return { embedder, folder, refused, index };
}

const idsOf = (ranked: readonly { ad: Ad }[]) => ranked.map(({ ad }) => ad.id);

test("ads close to the prompt come first and others not at all", async () => {
  const { index } = setup();
  const relevance = await index(ADS);
  const ranked = await relevance.rank(questionOf("shoes for a marathon", { "running-shoes": 0.9 }));
  expect(idsOf(ranked)).toEqual(["velmora", "stridewell"]);
  const scores = ranked.map(({ score }) => score);
  expect(scores.every((score) => score > 0 && score <= 1)).toBe(true);
  expect(scores).toEqual(scores.toSorted((a, b) => b - a));
});

test("an ad of a category that the prompt model doesn't know is found by its text", async () => {
  const { index } = setup();
  const relevance = await index(ADS);
  expect(idsOf(await relevance.rank(questionOf("an acoustic guitar?", { insurance: 0.05 }, 0.8)))).toEqual([
    "oakstrum",
  ]);
  expect(await relevance.rank(questionOf("an acoustic guitar?", { insurance: 0.9 }, 0.01))).toEqual([]);
});

test("a prompt without a wish to buy isn't even embedded", async () => {
  const { index, embedder } = setup();
  const relevance = await index(ADS);
  embedder.calls = 0;
  expect(await relevance.rank(questionOf("who invented shoes", { "running-shoes": 0.1 }, 0, 0.9))).toEqual(
    [],
  );
  expect(embedder.calls).toBe(0);
});

test("a prompt far from all ads gets none, whatever its category", async () => {
  const { index } = setup();
  const relevance = await index(ADS);
  expect(await relevance.rank(questionOf("xyzzy", { "running-shoes": 0.9 }))).toEqual([]);
});

test("other languages are ranked by the other engine", async () => {
  const { index, embedder } = setup();
  const relevance = await index(ADS);
  embedder.calls = 0;
  const question = { ...questionOf("shoes", { "running-shoes": 0.9 }), language: "de" };
  expect(await relevance.rank(question)).toEqual([{ ad: POLICY, score: 0.25 }]);
  expect(embedder.calls).toBe(0);
});

test("a prompt without a vector gets no ad and is counted", async () => {
  const { index, embedder, refused } = setup();
  const relevance = await index(ADS);
  embedder.refusal = { kind: "refused", reason: "overdue" };
  expect(await relevance.rank(questionOf("shoes", { "running-shoes": 0.9 }))).toEqual([]);
  expect(refused).toEqual(["overdue"]);
});

test("texts of ads are embedded once, and again only where they change", async () => {
  const { index, embedder } = setup();
  const callsOf = async (ads: readonly Ad[]) => {
    embedder.calls = 0;
    await index(ads);
    return embedder.calls;
  };
  expect(await callsOf(ADS)).toBe(ADS.length + REFERENCE_TEXTS.length);
  expect(await callsOf(ADS)).toBe(0);
  expect(await callsOf([...ADS.slice(1), { ...POLICY, description: "A policy." }])).toBe(1);
  expect(await callsOf([...ADS.slice(1), { ...SHOES, id: "velmora-2", bid_cpm_micros: 2 }])).toBe(0);
});

test.each([
  ["cut off", (bytes: Buffer) => bytes.subarray(0, -10)],
  ["changed in one byte", (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.of(0x7f)])],
  ["of another form", () => Buffer.from("[]\n")],
  ["empty", () => Buffer.alloc(0)],
])("a file of vectors that is %s is replaced", async (_, damage) => {
  const { index, embedder, folder } = setup();
  await index(ADS);
  const [name = ""] = readdirSync(folder);
  const file = join(folder, name);
  const sound = readFileSync(file);
  writeFileSync(file, damage(sound));
  embedder.calls = 0;
  await index(ADS);
  expect(embedder.calls).toBe(ADS.length + REFERENCE_TEXTS.length);
  expect(readFileSync(file).equals(sound)).toBe(true);
  expect(readdirSync(folder)).toEqual([name]);
});

test("an ad that the model gives no vector for fails the whole index", async () => {
  const { index, embedder } = setup();
  embedder.refusal = { kind: "refused", reason: "failed" };
  await expect(index(ADS)).rejects.toThrow(/no vector for an ad's text: failed/);
});
