import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { z } from "zod";
import type { Embedder } from "./embedding-pool.ts";
import { EmbeddingModelError } from "./model-files.ts";

/** If one text of an ad takes longer, the thread is stuck. */
const TEXT_TIMEOUT_MS = 30_000;
/** After this many texts the file is saved and the progress is logged. A crash loses at most this much work. */
const SAVE_EVERY_TEXTS = 500;

export interface VectorCache {
  readonly embedder: Embedder;
  /** Holds one file for each model. */
  readonly folder: string;
  readonly log: Logger;
}

/**
 * The vectors of texts, in the order of the texts. Vectors in the file of this model are used; the others are computed
 * and saved. Afterwards the file holds only these texts, so that it doesn't grow with each change of the catalogue. A
 * broken file is replaced. Throws an EmbeddingModelError if a text can't be embedded.
 */
export async function loadTextVectors(texts: readonly string[], cache: VectorCache): Promise<Float32Array[]> {
  const { embedder, log } = cache;
  const file = join(cache.folder, `${embedder.modelId.slice(0, 32)}.vectors`);
  const known = loadKnown(file, cache);
  const textOf = new Map(texts.map((text) => [keyOf(text), text]));
  const kept = new Map([...known].filter(([key]) => textOf.has(key)));
  const missing = [...textOf].filter(([key]) => !kept.has(key));
  for (const [index, [key, text]] of missing.entries()) {
    kept.set(key, await embedText(embedder, text));
    if ((index + 1) % SAVE_EVERY_TEXTS === 0) {
      await saveVectors(file, kept, embedder.dimensions);
      log.info({ event: "embedding_texts", done: index + 1, of: missing.length });
    }
  }
  if (missing.length > 0 || kept.size < known.size) {
    await saveVectors(file, kept, embedder.dimensions);
  }
  log.info({ event: "texts_embedded", computed: missing.length, cached: textOf.size - missing.length });
  return texts.map((text) => kept.get(keyOf(text)) ?? new Float32Array(embedder.dimensions));
}

function loadKnown(file: string, { embedder, log }: VectorCache): KeyedVectors {
  const loaded = loadVectors(file, embedder.dimensions);
  switch (loaded.kind) {
    case "ok":
      return loaded.vectors;
    case "absent":
      return new Map();
    case "broken":
      log.warn({ event: "embeddings_file_broken", file, reason: loaded.reason });
      return new Map();
    default:
      return loaded satisfies never;
  }
}

async function embedText(embedder: Embedder, text: string): Promise<Float32Array> {
  const embedded = await embedder.embed(text, "passage", TEXT_TIMEOUT_MS);
  if (embedded.kind === "refused") {
    throw new EmbeddingModelError(`the model gave no vector for an ad's text: ${embedded.reason}`);
  }
  return embedded.vector;
}

function keyOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Vectors by the key of their text. */
type KeyedVectors = ReadonlyMap<string, Float32Array>;

type VectorFileResult =
  | { readonly kind: "ok"; readonly vectors: KeyedVectors }
  | { readonly kind: "absent" }
  | { readonly kind: "broken"; readonly reason: string };

const headerSchema = z.strictObject({
  dimensions: z.int().min(1),
  keys: z.array(z.string()),
  /** SHA-256 of all bytes after the header's line, in hexadecimal. */
  sha256: z.string(),
});

const FLOAT_BYTES = 4;

/** Writes a line of JSON (see headerSchema), then the vectors in the order of the keys, as 32-bit floats. */
async function saveVectors(file: string, vectors: KeyedVectors, dimensions: number): Promise<void> {
  const rows = Buffer.concat(
    [...vectors.values()].map((row) => Buffer.from(row.buffer, row.byteOffset, row.byteLength)),
  );
  const header = { dimensions, keys: [...vectors.keys()], sha256: sha256Of(rows) };
  const unfinished = `${file}.${process.pid}.part`;
  await mkdir(dirname(file), { recursive: true });
  try {
    await writeFile(unfinished, Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), rows]));
    await rename(unfinished, file);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Reads a file of `saveVectors`. A file that was changed or cut in any way is broken. */
function loadVectors(file: string, dimensions: number): VectorFileResult {
  try {
    const bytes = readFileSync(file);
    const headerEnd = bytes.indexOf("\n");
    const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
    const rows = bytes.subarray(headerEnd + 1);
    const isWhole =
      header.dimensions === dimensions &&
      rows.length === header.keys.length * dimensions * FLOAT_BYTES &&
      header.sha256 === sha256Of(rows);
    return isWhole
      ? { kind: "ok", vectors: vectorsOf(header.keys, new Uint8Array(rows).buffer, dimensions) }
      : { kind: "broken", reason: "its vectors don't match its header" };
  } catch (error) {
    const isAbsent = error instanceof Error && "code" in error && error.code === "ENOENT";
    return isAbsent ? { kind: "absent" } : { kind: "broken", reason: "it has no such header" };
  }
}

function vectorsOf(keys: readonly string[], rows: ArrayBuffer, dimensions: number): KeyedVectors {
  const rowBytes = dimensions * FLOAT_BYTES;
  return new Map(
    keys.map((key, row) => [key, new Float32Array(rows.slice(row * rowBytes, (row + 1) * rowBytes))]),
  );
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
