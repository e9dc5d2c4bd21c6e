import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import { env, InferenceSession, Tensor } from "onnxruntime-web";
import { normalised } from "../../prompt-model/word-vectors.ts";
import { findModelFiles, type ModelFiles } from "./model-files.ts";
import { TextEncoder } from "./text-encoder.ts";
import { choosePrefixes, type PrefixMode, type TextPrefixes, type TextRole } from "./text-prefixes.ts";

/**
 * A sentence-embedding model run here: tokens, one inference, the mean over tokens, length 1. Texts are run one
 * by one, so that none is padded to another's length, and the result of a text doesn't depend on its neighbours.
 * Inference holds the thread that it runs on: see embedding-pool.ts for the thread of its own.
 */
export interface EmbedderOptions {
  /** Holds the files of model-files.ts. */
  readonly folder: string;
  readonly prefixes: PrefixMode;
  /** Longer texts are cut. */
  readonly tokensMax: number;
  /** Threads of one inference. */
  readonly threads: number;
}

export type EmbedderResult =
  | { readonly kind: "ok"; readonly embedder: SentenceEmbedder }
  | { readonly kind: "faulty"; readonly fault: string };

/** The runtime's number for errors and worse. */
const LOG_ERRORS = 3;

/** What models are fed; each takes some of them. */
const INPUTS: Readonly<Record<string, bigint | "ids">> = {
  input_ids: "ids",
  attention_mask: 1n,
  token_type_ids: 0n,
};

export class SentenceEmbedder {
  /** The same for the same files and options: vectors with the same id compare. */
  readonly modelId: string;
  readonly dimensions: number;
  readonly #session: InferenceSession;
  readonly #encoder: TextEncoder;
  readonly #prefixes: TextPrefixes;

  constructor(parts: {
    modelId: string;
    dimensions: number;
    session: InferenceSession;
    encoder: TextEncoder;
    prefixes: TextPrefixes;
  }) {
    this.modelId = parts.modelId;
    this.dimensions = parts.dimensions;
    this.#session = parts.session;
    this.#encoder = parts.encoder;
    this.#prefixes = parts.prefixes;
  }

  /** The direction of a text's meaning, of length 1. */
  async embed(text: string, role: TextRole): Promise<Float32Array> {
    const states = await runModel(this.#session, this.#encoder.encode(this.#prefixes[role] + text));
    return meanDirection(states, this.dimensions);
  }
}

/** Loads a model and tries it on one word; a folder that can't be used is a fault that names the file. */
export async function loadSentenceEmbedder(options: EmbedderOptions): Promise<EmbedderResult> {
  const found = findModelFiles(options.folder);
  if (found.kind === "faulty") {
    return found;
  }
  const { files } = found;
  const read = readTexts(files, options);
  if (read.kind === "faulty") {
    return read;
  }
  const { encoder, prefixes } = read;
  try {
    env.wasm.numThreads = options.threads;
    const session = await InferenceSession.create(readFileSync(files.weights), {
      executionProviders: ["wasm"],
      // Warnings would go to standard error past the log, and say nothing that an operator could mend.
      logSeverityLevel: LOG_ERRORS,
    });
    const tokens = encoder.encode("a");
    const dimensions = (await runModel(session, tokens)).length / tokens.length;
    const modelId = fingerprint(files, { prefixes, tokensMax: options.tokensMax });
    const embedder = new SentenceEmbedder({ modelId, dimensions, session, encoder, prefixes });
    return { kind: "ok", embedder };
  } catch (error) {
    return faultOf(files.weights, error);
  }
}

function readTexts({ tokenizer, tokenizerConfig, sentenceConfig }: ModelFiles, options: EmbedderOptions) {
  let reading = tokenizer;
  try {
    const vocabulary = parseJson(tokenizer) ?? {};
    reading = tokenizerConfig;
    const config = parseJson(tokenizerConfig) ?? {};
    reading = sentenceConfig;
    const prefixes = choosePrefixes(options.prefixes, parseJson(sentenceConfig));
    reading = tokenizer;
    const encoder = new TextEncoder(new Tokenizer(vocabulary, config), options.tokensMax);
    return { kind: "ok", encoder, prefixes } as const;
  } catch (error) {
    return faultOf(reading, error);
  }
}

function parseJson(file: string): object | undefined {
  const value: unknown = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  return typeof value === "object" && value !== null ? value : undefined;
}

/** The states of all tokens, one after the other. Throws where the model is none of the kind. */
async function runModel(session: InferenceSession, ids: readonly number[]): Promise<Float32Array> {
  const feeds = session.inputNames.map((name) => {
    const value = INPUTS[name];
    if (value === undefined) {
      throw new TypeError(`it wants an input named ${name}, which no sentence-embedding model has`);
    }
    const data = BigInt64Array.from(ids, (id) => (value === "ids" ? BigInt(id) : value));
    return [name, new Tensor("int64", data, [1, ids.length])] as const;
  });
  const outputs = await session.run(Object.fromEntries(feeds));
  const states = Object.values(outputs).find(({ dims }) => dims.length === 3 && dims[1] === ids.length);
  if (!(states?.data instanceof Float32Array) || states.data.length === 0) {
    throw new TypeError("it has no output of 32-bit floats with a row for each token");
  }
  return states.data;
}

function meanDirection(states: Float32Array, dimensions: number): Float32Array {
  const sum = new Float32Array(dimensions);
  states.forEach((value, at) => {
    sum[at % dimensions] = (sum[at % dimensions] ?? 0) + value;
  });
  return normalised(sum);
}

function fingerprint({ weights, tokenizer }: ModelFiles, settings: object): string {
  const hash = createHash("sha256");
  for (const file of [weights, tokenizer]) {
    hash.update(readFileSync(file));
  }
  return hash.update(JSON.stringify(settings)).digest("hex");
}

function faultOf(file: string, error: unknown) {
  const reason = error instanceof Error ? error.message : String(error);
  return { kind: "faulty", fault: `${file} can't be used: ${reason}` } as const;
}
