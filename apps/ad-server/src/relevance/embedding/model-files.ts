import { createWriteStream, existsSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CannotStartError } from "@adrelay/service-kit";
import type { Logger } from "pino";
import { z } from "zod";

/** Where a folder of a sentence-embedding model can have its weights; the smallest file comes first. */
const WEIGHTS_NAMES = ["model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx"] as const;
const TOKENIZER_NAME = "tokenizer.json";
/** Optional files of a model. Without them, defaults apply. */
const TOKENIZER_CONFIG_NAME = "tokenizer_config.json";
const SENTENCE_CONFIG_NAME = "config_sentence_transformers.json";

export interface ModelFiles {
  readonly weights: string;
  readonly tokenizer: string;
  readonly tokenizerConfig: string;
  readonly sentenceConfig: string;
}

type ModelFilesResult =
  | { readonly kind: "ok"; readonly files: ModelFiles }
  | { readonly kind: "faulty"; readonly fault: string };

/** Finds the files of a model in a folder that is laid out like the hub. It does not check what they hold. */
export function findModelFiles(folder: string): ModelFilesResult {
  const weights = WEIGHTS_NAMES.map((name) => join(folder, name)).find((file) => existsSync(file));
  const tokenizer = join(folder, TOKENIZER_NAME);
  if (weights === undefined) {
    return { kind: "faulty", fault: `${folder} has none of ${WEIGHTS_NAMES.join(", ")}` };
  }
  if (!existsSync(tokenizer)) {
    return { kind: "faulty", fault: `${tokenizer} is missing` };
  }
  const tokenizerConfig = join(folder, TOKENIZER_CONFIG_NAME);
  return {
    kind: "ok",
    files: { weights, tokenizer, tokenizerConfig, sentenceConfig: join(folder, SENTENCE_CONFIG_NAME) },
  };
}

/** A model can't be used. The message names the file and the reason. */
export class EmbeddingModelError extends CannotStartError {
  override readonly name = "EmbeddingModelError";
}

/** A query is what a person writes; passages are the texts that queries are compared with. */
export type TextRole = "query" | "passage";
export type TextPrefixes = Readonly<Record<TextRole, string>>;

/**
 * Which prefixes texts get:
 * - `model`: the prefixes in the model's own settings, if it has any
 * - `e5`: the prefixes of the E5 family, because exported folders of E5 models often lack the settings
 * - `none`: no prefixes
 */
export const PREFIX_MODES = ["model", "e5", "none"] as const;
export type PrefixMode = (typeof PREFIX_MODES)[number];

const NO_PREFIXES = { query: "", passage: "" } as const;
const E5_PREFIXES = { query: "query: ", passage: "passage: " } as const;

/** The part of the model's settings that is read. Prefixes are called "prompts" there. */
const sentenceConfigSchema = z.object({ prompts: z.record(z.string(), z.string()).optional() });

/**
 * The words that are put before a text of each role.
 *
 * @param sentenceConfig the content of the model's settings; undefined if it has none
 */
export function choosePrefixes(mode: PrefixMode, sentenceConfig: unknown): TextPrefixes {
  switch (mode) {
    case "none":
      return NO_PREFIXES;
    case "e5":
      return E5_PREFIXES;
    case "model": {
      const prompts = sentenceConfigSchema.safeParse(sentenceConfig).data?.prompts ?? {};
      return { query: prompts["query"] ?? "", passage: prompts["passage"] ?? prompts["document"] ?? "" };
    }
    default:
      return mode satisfies never;
  }
}

/** A model on the hub at one commit, because the files behind a name can change. */
export interface HubModel {
  readonly owner: string;
  readonly name: string;
  /** 40 hexadecimal digits. */
  readonly commit: string;
}

interface HubOptions {
  readonly hubUrl: string;
  /** Each model has its own folder below this one. */
  readonly folder: string;
  readonly log: Logger;
}

const HUB_MODEL = /^(?<owner>[\w-][\w.-]*)\/(?<name>[\w-][\w.-]*)@(?<commit>[0-9a-f]{40})$/;
/** Written when all files are there. From then on the hub isn't asked. */
const COMPLETE_NAME = ".complete";
const MIB = 1024 * 1024;
const WEIGHTS_BYTES_MAX = 1024 * MIB;
const TEXT_BYTES_MAX = 64 * MIB;

/** Parses `owner/name@commit`; undefined for any other text. */
export function parseHubModel(text: string): HubModel | undefined {
  const { owner, name, commit } = HUB_MODEL.exec(text)?.groups ?? {};
  return owner === undefined || name === undefined || commit === undefined
    ? undefined
    : { owner, name, commit };
}

/**
 * The folder of a model. It is downloaded if it isn't complete; files that an earlier download left are kept. Throws an
 * EmbeddingModelError that names the address.
 */
export async function fetchHubModel(model: HubModel, options: HubOptions): Promise<string> {
  const { owner, name, commit } = model;
  const folder = join(options.folder, `${owner}--${name}--${commit.slice(0, 12)}`);
  const complete = join(folder, COMPLETE_NAME);
  if (existsSync(complete)) {
    return folder;
  }
  await mkdir(folder, { recursive: true });
  const base = `${options.hubUrl.replace(/\/+$/, "")}/${owner}/${name}/resolve/${commit}`;
  const fetchOne = (file: string, bytesMax: number) =>
    fetchFile({ url: `${base}/${file}`, file: join(folder, file), bytesMax, log: options.log });
  await fetchWeights(base, fetchOne);
  if (!(await fetchOne(TOKENIZER_NAME, TEXT_BYTES_MAX))) {
    throw new EmbeddingModelError(`${base}/${TOKENIZER_NAME} is not there`);
  }
  await fetchOne(TOKENIZER_CONFIG_NAME, TEXT_BYTES_MAX);
  await fetchOne(SENTENCE_CONFIG_NAME, TEXT_BYTES_MAX);
  await writeFile(complete, "");
  return folder;
}

async function fetchWeights(
  base: string,
  fetchOne: (file: string, bytesMax: number) => Promise<boolean>,
): Promise<void> {
  for (const name of WEIGHTS_NAMES) {
    if (await fetchOne(name, WEIGHTS_BYTES_MAX)) {
      return;
    }
  }
  throw new EmbeddingModelError(`${base} has none of ${WEIGHTS_NAMES.join(", ")}`);
}

/** Returns false if the hub has no such file. */
async function fetchFile(options: {
  url: string;
  file: string;
  bytesMax: number;
  log: Logger;
}): Promise<boolean> {
  if (existsSync(options.file)) {
    return true;
  }
  const fetched = await downloadFile(options);
  switch (fetched.kind) {
    case "ok":
    case "absent":
      return fetched.kind === "ok";
    case "faulty":
      throw new EmbeddingModelError(`${options.url} can't be downloaded: ${fetched.reason}`);
    default:
      return fetched satisfies never;
  }
}

type DownloadResult =
  | { readonly kind: "ok" }
  | { readonly kind: "absent" }
  | { readonly kind: "faulty"; readonly reason: string };

interface DownloadOptions {
  readonly url: string;
  readonly file: string;
  readonly bytesMax: number;
  readonly log: Logger;
}

/** A download of one file that takes longer is aborted. */
const DOWNLOAD_TIMEOUT_MS = 15 * 60_000;
const PROGRESS_INTERVAL_MS = 5000;

/** Downloads one file, whole or not at all. */
export async function downloadFile(options: DownloadOptions): Promise<DownloadResult> {
  const unfinished = `${options.file}.${process.pid}.part`;
  try {
    const response = await fetch(options.url, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
    if (response.status === 404) {
      await response.body?.cancel();
      return { kind: "absent" };
    }
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      return { kind: "faulty", reason: `the answer was ${response.status}` };
    }
    await mkdir(dirname(options.file), { recursive: true });
    await pipeline(
      Readable.fromWeb(response.body),
      (chunks) => watchBytes(chunks, expectedBytes(response), options),
      createWriteStream(unfinished),
    );
    await rename(unfinished, options.file);
    return { kind: "ok" };
  } catch (error) {
    return { kind: "faulty", reason: reasonOf(error) };
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Passes bytes on and logs the progress. Throws if there are too many or too few bytes. */
async function* watchBytes(
  chunks: AsyncIterable<Uint8Array>,
  expected: number | undefined,
  { url, bytesMax, log }: DownloadOptions,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let loggedMs = performance.now();
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new RangeError(`it has more than ${bytesMax} bytes`);
    }
    if (performance.now() - loggedMs >= PROGRESS_INTERVAL_MS) {
      loggedMs = performance.now();
      log.info({ event: "model_downloading", url, bytes, of: expected });
    }
    yield chunk;
  }
  if (expected !== undefined && bytes !== expected) {
    throw new RangeError(`it ended after ${bytes} of ${expected} bytes`);
  }
  log.info({ event: "model_file_downloaded", url, bytes });
}

/** The length that the answer promises. It is unknown for an encoded body, whose Content-Length counts encoded bytes. */
function expectedBytes({ headers }: Response): number | undefined {
  const length = headers.get("Content-Length");
  return length === null || headers.has("Content-Encoding") ? undefined : Number(length);
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) {
    return String(error);
  }
  const { cause } = error;
  return cause instanceof Error ? `${error.message} (${cause.message})` : error.message;
}
