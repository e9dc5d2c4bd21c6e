import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { Tokenizer } from "@huggingface/tokenizers";
import { env, InferenceSession, Tensor } from "onnxruntime-web";
import { normalised } from "../../prompt-model/word-vectors.ts";
import {
  choosePrefixes,
  findModelFiles,
  type ModelFiles,
  type PrefixMode,
  type TextPrefixes,
  type TextRole,
} from "./model-files.ts";

export interface EmbedderOptions {
  /** Holds the files that model-files.ts names. */
  readonly folder: string;
  readonly prefixes: PrefixMode;
  /** A longer text is cut. */
  readonly tokensMax: number;
  /** Threads of one inference. */
  readonly threads: number;
}

export type EmbedderResult =
  | { readonly kind: "ok"; readonly embedder: SentenceEmbedder }
  | { readonly kind: "faulty"; readonly fault: string };

/** ONNX Runtime's log level for errors and fatal errors. */
const LOG_ERRORS = 3;

/** The possible inputs of a model. Each model has some of them. */
const INPUTS: Readonly<Record<string, bigint | "ids">> = {
  input_ids: "ids",
  attention_mask: 1n,
  token_type_ids: 0n,
};

/**
 * A sentence-embedding model that runs in this thread. A text is cut into tokens, one inference gives a state for each
 * token, and the mean of the states, scaled to length 1, is the vector. Texts run one by one, so that no text is padded
 * to the length of another and the vector of a text does not depend on other texts. Inference blocks the thread for
 * tens of milliseconds; so EmbeddingPool runs it in a separate thread.
 */
export class SentenceEmbedder {
  /** Equal for equal files and options. Only vectors with the same id can be compared. */
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

/** Loads a model and tries it on one word. If the folder can't be used, the fault names the file. */
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
      // Warnings would bypass the log and go to standard error, and an operator can do nothing about them.
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

/** The states of all tokens, one after the other. Throws if this is no sentence-embedding model. */
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

/** The part of a tokenizer that is used here. TypeScript can't find the package's own types with `nodenext`. */
interface Tokens {
  encode(text: string, options?: { add_special_tokens: boolean }): { readonly ids: readonly number[] };
}

/** Upper bound of the mean length of a token. A text is cut by it first, so that the tokenizer never reads a long one. */
const CHARS_PER_TOKEN_MAX = 16;

/**
 * Turns a text into at most `tokensMax` token ids, including the tokens that the model wants before and after a text,
 * such as [CLS] and [SEP]. A text that is cut still has these.
 */
class TextEncoder {
  readonly #tokenizer: Tokens;
  readonly #frame: { readonly before: readonly number[]; readonly after: readonly number[] };
  readonly #bareTokensMax: number;
  readonly #charsMax: number;

  constructor(tokenizer: Tokens, tokensMax: number) {
    this.#tokenizer = tokenizer;
    this.#frame = frameOf(tokenizer);
    this.#bareTokensMax = Math.max(tokensMax - this.#frame.before.length - this.#frame.after.length, 1);
    this.#charsMax = tokensMax * CHARS_PER_TOKEN_MAX;
  }

  encode(text: string): number[] {
    // An unpaired surrogate makes some tokenizers throw.
    const read = text.slice(0, this.#charsMax).toWellFormed();
    const bare = this.#tokenizer.encode(read, { add_special_tokens: false }).ids;
    return [...this.#frame.before, ...bare.slice(0, this.#bareTokensMax), ...this.#frame.after];
  }
}

function frameOf(tokenizer: Tokens) {
  const bare = tokenizer.encode("a", { add_special_tokens: false }).ids;
  const framed = tokenizer.encode("a").ids;
  const start = framed.findIndex((_, at) => bare.every((id, offset) => framed[at + offset] === id));
  return start < 0
    ? { before: [], after: [] }
    : { before: framed.slice(0, start), after: framed.slice(start + bare.length) };
}
