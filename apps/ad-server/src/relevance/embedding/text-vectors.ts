import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Logger } from "pino";
import { type Embedder, EmbeddingModelError } from "./embedder.ts";
import { type KeyedVectors, loadVectors, saveVectors } from "./vector-file.ts";

/** A thread that takes longer for one text of an ad is stuck. */
const TEXT_TIMEOUT_MS = 30_000;
/** So much work a crash may cost, and so often the log tells how far it is. */
const SAVE_EVERY_TEXTS = 500;

export interface VectorCache {
  readonly embedder: Embedder;
  /** Folder of the files, one for each model. */
  readonly folder: string;
  readonly log: Logger;
}

/**
 * The vectors of texts, in their order: from the file of this model where it has them, else computed and saved.
 * The file keeps only these texts, so that it doesn't grow with every change of the catalogue. A broken file
 * is made anew. Throws an EmbeddingModelError if a text can't be embedded.
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
