import { join } from "node:path";
import type { Logger } from "pino";
import { EmbeddingPool } from "./embedding-pool.ts";
import type { EmbeddingOptions } from "./embedding-settings.ts";
import { fetchHubModel } from "./hub-model.ts";

/** Loads the model of the settings, from its folder or from the hub. Throws an EmbeddingModelError. */
export async function openEmbedder(options: EmbeddingOptions, log: Logger): Promise<EmbeddingPool> {
  const { source, hubUrl, cacheFolder, prefixes, tokensMax, threads } = options;
  const folder =
    typeof source === "string"
      ? source
      : await fetchHubModel(source, { hubUrl, folder: join(cacheFolder, "models"), log });
  const embedder = await EmbeddingPool.open({ folder, prefixes, tokensMax, threads }, log);
  log.info({ event: "embedding_model_loaded", folder, dimensions: embedder.dimensions });
  return embedder;
}
