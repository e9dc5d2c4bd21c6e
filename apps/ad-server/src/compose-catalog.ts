import type { Lifecycle } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Ad } from "./catalog/ad.ts";
import { CatalogWatch } from "./catalog/catalog-watch.ts";
import { CatalogMetrics, CurrentCatalog } from "./catalog/current-catalog.ts";
import { loadCatalogOnThread } from "./catalog/load-catalog.ts";
import type { AdServerConfig } from "./config.ts";
import { type AdRules, loadPromptRules, rulesOfAds } from "./injection/decide-injection.ts";
import type { AdServerMetrics } from "./metrics.ts";

/** Builds the catalogue of the settings with everything that decisions need. */
export async function openCatalog({ ads, floorCpmMicros }: AdServerConfig): Promise<CurrentCatalog> {
  const promptRules = await loadPromptRules();
  let adRules: AdRules | undefined;
  const buildRules = async (current: readonly Ad[]) => {
    adRules = await rulesOfAds(current, promptRules.model, adRules);
    return { ...promptRules, ...adRules, floorCpmMicros };
  };
  return CurrentCatalog.open(ads, { now: Date.now, buildRules });
}

interface WatchParts {
  readonly config: AdServerConfig;
  readonly catalog: CurrentCatalog;
  readonly metrics: AdServerMetrics;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
}

/** Starts to reload the catalogue when its file changes. */
export async function watchCatalog({
  config,
  catalog,
  metrics,
  log,
  lifecycle,
}: WatchParts): Promise<CatalogWatch> {
  const catalogMetrics = new CatalogMetrics(metrics.registry);
  catalogMetrics.inForce(catalog.now);
  const watch = new CatalogWatch({
    file: config.catalogFile,
    readState: config.catalogState,
    intervalMs: config.catalogReloadIntervalMs,
    current: catalog,
    log,
    read: loadCatalogOnThread,
    onOutcome: (outcome) => {
      catalogMetrics.count(outcome);
      catalogMetrics.inForce(catalog.now);
    },
  });
  await lifecycle.start("catalog watch", watch);
  return watch;
}
