import { join } from "node:path";
import type { Logger } from "pino";
import type { Ad } from "../catalog/ad.ts";
import type { PromptModel } from "../prompt-model/prompt-model.ts";
import type { EmbedRefusal } from "./embedding/embedder.ts";
import { EmbeddingRelevance } from "./embedding/embedding-relevance.ts";
import type { EmbeddingOptions } from "./embedding/embedding-settings.ts";
import { openEmbedder } from "./embedding/open-embedder.ts";
import { LexicalRelevance } from "./lexical-relevance.ts";
import type { Relevance } from "./relevance.ts";

/** Makes the relevance of a catalogue, again for each one that is loaded. */
export interface RelevanceMaker {
  make(ads: readonly Ad[]): Promise<Relevance>;
  stop(): Promise<void>;
}

export interface RelevanceParts {
  readonly model: PromptModel;
  readonly log: Logger;
  /** A prompt got no ad because the embedding model gave it no vector. */
  readonly onRefused: (reason: EmbedRefusal) => void;
}

/**
 * The engine of the settings: that of an embedding model if there are options of one, or else the lexical. Throws
 * an EmbeddingModelError if the model can't be used.
 */
export async function openRelevance(
  embedding: EmbeddingOptions | undefined,
  { model, log, onRefused }: RelevanceParts,
): Promise<RelevanceMaker> {
  if (embedding === undefined) {
    return { make: (ads) => LexicalRelevance.build(ads, model), stop: async () => {} };
  }
  const embedder = await openEmbedder(embedding, log);
  const make = async (ads: readonly Ad[]) =>
    EmbeddingRelevance.of(ads, {
      cache: { embedder, folder: join(embedding.cacheFolder, "embeddings"), log },
      knownCategories: model.categories,
      languages: embedding.languages,
      otherLanguages: await LexicalRelevance.build(ads, model),
      timeoutMs: embedding.timeoutMs,
      onRefused,
    });
  return { make, stop: () => embedder.stop() };
}
