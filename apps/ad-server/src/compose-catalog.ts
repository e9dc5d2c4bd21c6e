import { join } from "node:path";
import type { Lifecycle } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Ad } from "./catalog/ad.ts";
import { CatalogWatch } from "./catalog/catalog-watch.ts";
import { CatalogMetrics, CurrentCatalog } from "./catalog/current-catalog.ts";
import { loadCatalogOnThread } from "./catalog/load-catalog.ts";
import type { AdServerConfig } from "./config.ts";
import { loadPromptRules } from "./injection/decide-injection.ts";
import type { AdServerMetrics } from "./metrics.ts";
import type { PromptModel } from "./prompt-model/prompt-model.ts";
import type { EmbedRefusal } from "./relevance/embedding/embedding-pool.ts";
import { EmbeddingMetrics, openEmbedder } from "./relevance/embedding/embedding-pool.ts";
import { EmbeddingRelevance } from "./relevance/embedding/embedding-relevance.ts";
import type { EmbeddingOptions } from "./relevance/embedding/embedding-settings.ts";
import { LexicalRelevance } from "./relevance/lexical-relevance.ts";
import { NegativeKeywords } from "./relevance/negative-keywords.ts";
import type { Relevance } from "./relevance/relevance.ts";

interface CatalogParts {
  readonly config: AdServerConfig;
  readonly metrics: AdServerMetrics;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
}

/** Builds the catalogue of the settings with everything that decisions need. */
export async function openCatalog({
  config,
  metrics,
  log,
  lifecycle,
}: CatalogParts): Promise<CurrentCatalog> {
  const { ads, floorCpmMicros } = config;
  const promptRules = await loadPromptRules();
  const embeddingMetrics = new EmbeddingMetrics(metrics.registry);
  const maker = await openRelevance(config.embedding, {
    model: promptRules.model,
    log,
    onRefused: (reason) => embeddingMetrics.refused(reason),
  });
  lifecycle.onStop("relevance", () => maker.stop());
  const buildRules = async (current: readonly Ad[]) => ({
    ...promptRules,
    relevance: await maker.make(current),
    negativeKeywords: await NegativeKeywords.build(current),
    floorCpmMicros,
  });
  return CurrentCatalog.open(ads, { now: Date.now, buildRules });
}

interface WatchParts extends CatalogParts {
  readonly catalog: CurrentCatalog;
}

/** Starts to reload the catalogue when its file changes, or on SIGHUP. */
export async function watchCatalog({ config, catalog, metrics, log, lifecycle }: WatchParts): Promise<void> {
  const catalogMetrics = new CatalogMetrics(metrics.registry);
  catalogMetrics.inForce(catalog.now);
  const watch = new CatalogWatch({
    file: config.catalogFile,
    intervalMs: config.catalogReloadIntervalMs,
    current: catalog,
    log,
    // In a terminal SIGHUP means that the terminal closed, so the process must end.
    reloadsOnHangUp: !process.stdout.isTTY,
    read: loadCatalogOnThread,
    onOutcome: (outcome) => {
      catalogMetrics.count(outcome);
      catalogMetrics.inForce(catalog.now);
    },
  });
  await lifecycle.start("catalog watch", watch);
}

/** Makes the relevance engine for each catalogue that is loaded. */
interface RelevanceMaker {
  make(ads: readonly Ad[]): Promise<Relevance>;
  stop(): Promise<void>;
}

interface RelevanceParts {
  readonly model: PromptModel;
  readonly log: Logger;
  /** Called if a prompt gets no ad because the embedding model returned no vector. */
  onRefused(reason: EmbedRefusal): void;
}

/**
 * Opens the engine that the settings name: an embedding model if it has options, otherwise the lexical engine. Throws
 * an EmbeddingModelError if the model can't be used.
 */
async function openRelevance(
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
