import {
  connectRedis,
  createLogger,
  guardRedis,
  Lifecycle,
  type RunnableService,
  startHttpServer,
} from "@adrelay/service-kit";
import type { Logger } from "pino";
import { ApiKeys } from "./api-keys.ts";
import { createAdServerApp } from "./app.ts";
import type { Ad } from "./catalog/ad.ts";
import { CatalogMetrics } from "./catalog/catalog-metrics.ts";
import { CatalogWatch } from "./catalog/catalog-watch.ts";
import { CurrentCatalog } from "./catalog/current-catalog.ts";
import { readCatalog } from "./catalog/read-catalog.ts";
import type { AdServerConfig } from "./config.ts";
import { FaultInjector } from "./faults/fault-injector.ts";
import { FaultPlan } from "./faults/fault-plan.ts";
import { loadPromptRules } from "./injection/shipped-rules.ts";
import { AdServerMetrics } from "./metrics.ts";
import { RateLimits } from "./rate-limits.ts";
import { EmbeddingMetrics } from "./relevance/embedding/embedding-metrics.ts";
import { openRelevance } from "./relevance/make-relevance.ts";
import { Books } from "./store/books.ts";
import { ReportStore } from "./store/report-store.ts";
import { sweepReservations } from "./store/reservation-sweep.ts";
import { ResponseStore } from "./store/response-store.ts";

/** Makes every part of the ad server and starts it; the parts are stopped in reverse order. */
export async function composeAdServer(config: AdServerConfig): Promise<RunnableService> {
  const log = createLogger("ad-server", config.logLevel);
  const lifecycle = new Lifecycle(log);

  const redis = connectRedis(config.redisUrl, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const durability = await guardRedis(redis, config.redisDurability, log);

  const books = new Books(redis, durability);
  const store = new ResponseStore(books, config.ackWindowMs);
  const sweep = sweepReservations(books, log);
  lifecycle.onStop("reservations", () => sweep.stop());
  const metrics = new AdServerMetrics(store);
  const catalog = await openCatalog({ config, metrics, log, lifecycle });
  const faults = new FaultInjector(new FaultPlan(config.faultRules));
  const app = createAdServerApp({
    log,
    store,
    metrics,
    faults,
    keys: new ApiKeys(config.apiKeys, config.revokedKeys),
    rates: new RateLimits(redis, config.rateLimits),
    operatorKeys: new ApiKeys(config.reportKeys),
    reports: new ReportStore(books),
    pacing: config.pacing,
    budgetMicrosOf: (adId) => catalog.now.adsById.get(adId)?.budget_micros ?? 0,
    // Read once a call: a request keeps the rules that it began with.
    get rules() {
      return catalog.now.rules;
    },
    now: Date.now,
    isStopping: () => lifecycle.isStopping,
    checkRedis: async () => durability.isDurable && (await redis.ping()) === "PONG",
  });

  await watchCatalog({ config, catalog, metrics, log, lifecycle });
  sweep.start();
  const server = await startHttpServer(app, { name: "the ad server", host: config.host, port: config.port });
  lifecycle.onStop("http", (signal) => server.stop(signal));
  lifecycle.onStop("faults", () => faults.stop());
  const listening = { port: server.port, ads: config.ads.length, faults: config.faultRules.length };
  return { log, lifecycle, shutdownTimeoutMs: config.shutdownTimeoutMs, listening };
}

interface CatalogParts {
  readonly config: AdServerConfig;
  readonly metrics: AdServerMetrics;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
}

async function openCatalog({ config, metrics, log, lifecycle }: CatalogParts): Promise<CurrentCatalog> {
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
    floorCpmMicros,
  });
  return CurrentCatalog.open(ads, { now: Date.now, buildRules });
}

interface WatchParts extends CatalogParts {
  readonly catalog: CurrentCatalog;
}

async function watchCatalog({ config, catalog, metrics, log, lifecycle }: WatchParts): Promise<void> {
  const catalogMetrics = new CatalogMetrics(metrics.registry);
  catalogMetrics.inForce(catalog.now);
  const watch = await CatalogWatch.start({
    file: config.catalogFile,
    intervalMs: config.catalogReloadIntervalMs,
    current: catalog,
    log,
    read: readCatalog,
    onOutcome: (outcome) => {
      catalogMetrics.count(outcome);
      catalogMetrics.inForce(catalog.now);
    },
  });
  lifecycle.onStop("catalog watch", () => watch.stop());
  const ignoreHangUps = onHangUp(() => watch.reload());
  lifecycle.onStop("hang-up", ignoreHangUps);
}

/** SIGHUP reloads, as of other servers; on a terminal it still means that the terminal is gone. */
function onHangUp(reload: () => Promise<void>): () => void {
  if (process.stdout.isTTY) {
    return () => {};
  }
  const handle = () => void reload();
  process.on("SIGHUP", handle);
  return () => void process.off("SIGHUP", handle);
}
