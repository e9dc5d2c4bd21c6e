/** A real model in the real runtime: loading, embedding, refusals. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "@adrelay/testkit";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { EmbeddingPool, WAITING_MAX } from "../src/relevance/embedding/embedding-pool.ts";
import { EmbeddingModelError } from "../src/relevance/embedding/model-files.ts";
import {
  type EmbedderOptions,
  loadSentenceEmbedder,
  type SentenceEmbedder,
} from "../src/relevance/embedding/sentence-embedder.ts";
import { directionOf, makeFolder, writeTinyModel } from "./tiny-embedding-model.ts";

const TIMEOUT_MS = 20_000;
/** The runtime is loaded once per process. The separate thread is only for tests of the thread. */
const OPTIONS = { prefixes: "none", tokensMax: 16, threads: 1 } as const;
const silent = pino({ level: "silent" });

async function load(folder: string, options: Partial<EmbedderOptions> = {}): Promise<SentenceEmbedder> {
  const loaded = await loadSentenceEmbedder({ folder, ...OPTIONS, ...options });
  if (loaded.kind === "faulty") {
    throw new EmbeddingModelError(loaded.fault);
  }
  return loaded.embedder;
}

async function openPool(folder: string, options: Partial<EmbedderOptions> = {}): Promise<EmbeddingPool> {
  const pool = await EmbeddingPool.open({ folder, ...OPTIONS, ...options }, silent);
  onTestFinished(() => pool.stop());
  return pool;
}

async function vectorOf(embedder: SentenceEmbedder, text: string): Promise<number[]> {
  return rounded(await embedder.embed(text, "query"));
}

const rounded = (vector: Float32Array) => Array.from(vector, (value) => Math.round(value * 1e4) / 1e4);

test.each(["model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx"])(
  "a text's vector is the mean of its words with weights in %s",
  async (weightsName) => {
    const embedder = await load(writeTinyModel(makeFolder(), {}, weightsName));
    expect(embedder.dimensions).toBe(8);
    expect(await vectorOf(embedder, "Running shoes?")).toEqual(directionOf(0));
    const [shoes = 0, insurance = 0] = await vectorOf(embedder, "insurance for shoes: insurance, policy");
    expect(insurance / shoes).toBeCloseTo(3, 3);
  },
);

test.each([
  ["no known word", "xyzzy"],
  ["no letter", "\u{1f3c3}"],
  ["nothing", ""],
  ["half a surrogate pair", "\ud83c"],
])("a text of %s has a vector without direction", async (_, text) => {
  const embedder = await load(writeTinyModel(makeFolder()));
  expect(await vectorOf(embedder, text)).toEqual(directionOf(-1));
});

test("a text is cut at the limit of tokens and stays framed", async () => {
  const embedder = await load(writeTinyModel(makeFolder()));
  expect(await vectorOf(embedder, `${"shoes ".repeat(14)}${"insurance ".repeat(100_000)}`)).toEqual(
    directionOf(0),
  );
});

test("inference in two threads gives the same vectors", async () => {
  const pool = await openPool(writeTinyModel(makeFolder(), { layers: 2 }), { threads: 2 });
  const embedded = await pool.embed("a guitar with strings", "query", TIMEOUT_MS);
  expect(embedded.kind === "vector" && rounded(embedded.vector)).toEqual(directionOf(2));
});

test("models that are fed more or other settings have other ids", async () => {
  const folder = writeTinyModel(makeFolder(), { inputs: ["input_ids", "attention_mask", "token_type_ids"] });
  const embedders = [await load(folder), await load(folder), await load(folder, { prefixes: "e5" })];
  const [one, same, other] = embedders.map(({ modelId }) => modelId);
  expect(same).toBe(one);
  expect(other).not.toBe(one);
});

test.each([
  ["model.onnx", undefined, "has none of model.onnx"],
  ["model.onnx", "not a model", "model.onnx can't be used"],
  ["tokenizer.json", undefined, "tokenizer.json is missing"],
  ["tokenizer.json", "{", "tokenizer.json can't be used"],
  ["tokenizer.json", "{}", "tokenizer.json can't be used"],
  ["tokenizer_config.json", "[", "tokenizer_config.json can't be used"],
  ["config_sentence_transformers.json", "[", "config_sentence_transformers.json can't be used"],
])("a %s of %j is refused by its name", async (name, content, message) => {
  const folder = writeTinyModel(makeFolder());
  rmSync(join(folder, name), { force: true });
  if (content !== undefined) {
    writeFileSync(join(folder, name), content);
  }
  await expect(load(folder)).rejects.toThrow(message);
});

test("a model of another kind is refused with what it wants", async () => {
  const folder = writeTinyModel(makeFolder(), { inputs: ["input_ids", "pixel_values"] });
  await expect(load(folder)).rejects.toThrow(/model\.onnx.*pixel_values/);
});

test("a text that takes too long is refused, and so are those beyond the queue", async () => {
  const folder = writeTinyModel(makeFolder(), { dimensions: 256, layers: 60 });
  const pool = await openPool(folder, { tokensMax: 512 });
  const long = "shoes ".repeat(510);
  const texts = Array.from({ length: WAITING_MAX + 2 }, () => pool.embed(long, "query", 20));
  const reasons = (await Promise.all(texts)).map((embedded) =>
    embedded.kind === "refused" ? embedded.reason : "",
  );
  expect(reasons.slice(0, -1).every((reason) => reason === "overdue")).toBe(true);
  expect(reasons.at(-1)).toBe("busy");
  await eventually(async () =>
    expect(await pool.embed("shoes", "query", TIMEOUT_MS)).toMatchObject({ kind: "vector" }),
  );
});

test("after a stop texts are refused and nothing hangs", async () => {
  const pool = await openPool(writeTinyModel(makeFolder()));
  await pool.stop();
  expect(await pool.embed("shoes", "query", 1000)).toMatchObject({ kind: "refused" });
});

test("a model that can't be used is refused by the pool with its file", async () => {
  await expect(openPool(makeFolder())).rejects.toThrow("has none of model.onnx");
});
