import {
  CallNotes,
  connectRedis,
  createLogger,
  guardRedis,
  Lifecycle,
  type RunnableService,
  startHttpServer,
} from "@adrelay/service-kit";
import { ApiKeys } from "./api-keys.ts";
import { createAdServerApp } from "./app.ts";
import type { AdServerConfig } from "./config.ts";
import { FaultInjector } from "./faults/fault-injector.ts";
import { FaultPlan } from "./faults/fault-plan.ts";
import { loadPromptRules } from "./injection/shipped-rules.ts";
import { AdServerMetrics } from "./metrics.ts";
import { LexicalRelevance } from "./relevance/lexical-relevance.ts";
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

  const promptRules = await loadPromptRules();
  const books = new Books(redis, durability);
  const store = new ResponseStore(books, config.ackWindowMs);
  const sweep = sweepReservations(books, log);
  lifecycle.onStop("reservations", () => sweep.stop());
  const budgets = new Map(config.ads.map((ad) => [ad.id, ad.budget_micros]));
  const metrics = new AdServerMetrics(store);
  const faults = new FaultInjector(new FaultPlan(config.faultRules));
  const app = createAdServerApp({
    log,
    store,
    metrics,
    faults,
    keys: new ApiKeys(config.apiKeys),
    operatorKeys: new ApiKeys(config.reportKeys),
    reports: new ReportStore(books),
    pacing: config.pacing,
    budgetMicrosOf: (adId) => budgets.get(adId) ?? 0,
    notes: new CallNotes(),
    rules: {
      ...promptRules,
      relevance: new LexicalRelevance(config.ads, promptRules.model),
      floorCpmMicros: config.floorCpmMicros,
    },
    now: Date.now,
    isStopping: () => lifecycle.isStopping,
    checkRedis: async () => durability.isDurable && (await redis.ping()) === "PONG",
  });

  sweep.start();
  const server = await startHttpServer(app, { name: "ad-server", host: config.host, port: config.port });
  lifecycle.onStop("http", (signal) => server.stop(signal));
  lifecycle.onStop("faults", () => faults.stop());
  const listening = { port: server.port, ads: config.ads.length, faults: config.faultRules.length };
  return { log, lifecycle, shutdownTimeoutMs: config.shutdownTimeoutMs, listening };
}
