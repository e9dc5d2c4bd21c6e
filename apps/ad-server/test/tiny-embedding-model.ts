import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { encodeOnnx, type OnnxGraph } from "./onnx-message.ts";

/** Each row is words that share one direction. All other words and tokens have none. */
const THINGS = [
  ["shoes", "running", "marathon", "trainer"],
  ["insurance", "cover", "policy"],
  ["guitar", "strings", "acoustic"],
] as const;
const SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"] as const;
const WORDS = [...SPECIAL, "query", "passage", ":", ...THINGS.flat()];

export interface TinyModel {
  /** Components of a vector. The first ones are the directions of THINGS. */
  readonly dimensions?: number;
  /** Multiplications that only make the inference slower. */
  readonly layers?: number;
  readonly inputs?: readonly string[];
}

/** The direction of a row of THINGS: 0 is shoes, 1 insurance, 2 guitars. */
export function directionOf(thing: number, dimensions = 8): number[] {
  return Array.from({ length: dimensions }, (_, at) => (at === thing ? 1 : 0));
}

/** Makes a folder that is deleted after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-embedding-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Writes a small model with real weights and a real vocabulary into a folder. */
export function writeTinyModel(folder: string, model: TinyModel = {}, weightsName = "model.onnx"): string {
  const weights = join(folder, weightsName);
  mkdirSync(dirname(weights), { recursive: true });
  writeFileSync(weights, encodeOnnx(graphOf(model)));
  writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(tokenizer()));
  return folder;
}

function graphOf({
  dimensions = 8,
  layers = 0,
  inputs = ["input_ids", "attention_mask"],
}: TinyModel): OnnxGraph {
  const rows = WORDS.flatMap((word) => {
    const thing = THINGS.findIndex((words) => words.some((one) => one === word));
    return directionOf(thing, dimensions);
  });
  const square = Array.from({ length: dimensions }, (_, row) => directionOf(row, dimensions)).flat();
  const steps = Array.from({ length: layers }, (_, index) => ({
    op: "MatMul" as const,
    inputs: [index === 0 ? "states" : `states-${index - 1}`, "square"],
    output: `states-${index}`,
  }));
  return {
    inputs,
    nodes: [
      { op: "Gather", inputs: ["words", "input_ids"], output: "states" },
      ...steps,
      { op: "Identity", inputs: [steps.at(-1)?.output ?? "states"], output: "last_hidden_state" },
    ],
    output: { name: "last_hidden_state", shape: ["texts", "tokens", dimensions] },
    weights: [
      { name: "words", shape: [WORDS.length, dimensions], values: Float32Array.from(rows) },
      { name: "square", shape: [dimensions, dimensions], values: Float32Array.from(square) },
    ],
  };
}

function tokenizer(): object {
  const special = (token: string) => ({ SpecialToken: { id: token, type_id: 0 } });
  const framed = (token: string) => ({ id: token, ids: [WORDS.indexOf(token)], tokens: [token] });
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: SPECIAL.map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: {
      type: "BertNormalizer",
      clean_text: true,
      handle_chinese_chars: true,
      strip_accents: null,
      lowercase: true,
    },
    pre_tokenizer: { type: "BertPreTokenizer" },
    post_processor: {
      type: "TemplateProcessing",
      single: [special("[CLS]"), { Sequence: { id: "A", type_id: 0 } }, special("[SEP]")],
      pair: [special("[CLS]"), { Sequence: { id: "A", type_id: 0 } }, special("[SEP]")],
      special_tokens: { "[CLS]": framed("[CLS]"), "[SEP]": framed("[SEP]") },
    },
    decoder: { type: "WordPiece", prefix: "##", cleanup: true },
    model: {
      type: "WordPiece",
      unk_token: "[UNK]",
      continuing_subword_prefix: "##",
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(WORDS.map((word, id) => [word, id])),
    },
  };
}
