import {
  connectRedis,
  createLogger,
  createOpsApp,
  guardRedis,
  Lifecycle,
  LoginGuard,
  makeReadBody,
  OPS_LISTENER_LIMITS,
  type RunnableService,
  startHttpServer,
} from "@adrelay/service-kit";
import type { Logger } from "pino";
import { ApiKeys, RateLimits } from "./access.ts";
import { createAdServerApp } from "./app.ts";
import { bytesInFlightMax, CallsInFlight } from "./calls-in-flight.ts";
import { openCatalog, watchCatalog } from "./compose-catalog.ts";
import type { AdServerConfig } from "./config.ts";
import { FaultInjector } from "./faults/fault-injector.ts";
import { FaultPlan } from "./faults/fault-rules.ts";
import { AdServerMetrics } from "./metrics.ts";
import { RedisStore } from "./store/redis-store.ts";
import { ReportStore } from "./store/report-store.ts";
import { ResponseStore, sweepReservations } from "./store/response-store.ts";
import { loadMissingRights } from "./store/rights.ts";

/** Creates every part of the ad server and starts it. The parts are stopped in reverse order. */
export async function composeAdServer(config: AdServerConfig): Promise<RunnableService> {
  const log = createLogger("ad-server", config.logLevel);
  const lifecycle = new Lifecycle(log);

  const redis = connectRedis(config.redis, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const rules = { mode: config.redisDurability, loadMissingRights: () => loadMissingRights(redis) };
  const durability = await guardRedis(redis, rules, log);

  const redisStore = new RedisStore(redis, durability);
  const store = new ResponseStore(redisStore, config.ackWindowMs);
  const metrics = new AdServerMetrics(store);
  const catalog = await openCatalog(config);
  const faults = new FaultInjector(new FaultPlan(config.faultRules));
  const app = createAdServerApp({
    log,
    store,
    metrics,
    faults,
    readBody: makeReadBody(config.bodyBytesMax),
    keys: new ApiKeys(config.apiKeys, config.revokedKeys),
    calls: new CallsInFlight({
      callsMax: config.callsMax,
      bytesMax: bytesInFlightMax(config.bodyBytesMax),
    }),
    rates: new RateLimits(redis, config.rateLimits),
    operatorKeys: new ApiKeys(config.reportKeys),
    reports: new ReportStore(redisStore),
    pacing: config.pacing,
    budgetMicrosOf: (adId) => catalog.now.adsById.get(adId)?.budget_micros ?? 0,
    // Read once for each request, which keeps the rules that it began with.
    get rules() {
      return catalog.now.rules;
    },
    now: Date.now,
  });

  const opsPort = await startOpsListener({ config, log, lifecycle, store, durability, metrics });
  const catalogWatch = await watchCatalog({ config, catalog, metrics, log, lifecycle });
  await lifecycle.start("reservations", sweepReservations(store, log));
  const server = await startHttpServer(app, {
    name: "the ad server",
    host: config.host,
    port: config.port,
    log,
    limits: { keepAliveTimeoutMs: config.keepAliveTimeoutMs, connectionsMax: config.connectionsMax },
    isStopping: () => lifecycle.isStopping,
  });
  lifecycle.onStop("http", (signal) => server.stop(signal));
  lifecycle.onStop("faults", () => faults.stop());
  const listening = {
    port: server.port,
    ops_port: opsPort,
    ads: config.ads.length,
    faults: config.faultRules.length,
  };
  const { shutdownDelayMs, shutdownTimeoutMs } = config;
  return {
    log,
    lifecycle,
    shutdownDelayMs,
    shutdownTimeoutMs,
    listening,
    onHangUp: () => catalogWatch.onHangUp(),
  };
}

interface OpsParts {
  readonly config: AdServerConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly store: ResponseStore;
  readonly durability: Awaited<ReturnType<typeof guardRedis>>;
  readonly metrics: AdServerMetrics;
}

/** Serves metrics and health; resolves to the port. */
async function startOpsListener({ config, log, lifecycle, ...parts }: OpsParts): Promise<number> {
  const { store, durability, metrics } = parts;
  const opsApp = createOpsApp({
    collect: async () => ({ registry: await metrics.collect() }),
    checks: [
      { name: "redis", check: async () => durability.isDurable },
      { name: "redis_writes", check: () => store.takesWrites() },
    ],
    warnings: () => durability.warnings(),
    isStopping: () => lifecycle.isStopping,
    log,
    access: {
      settings: config.opsAccess,
      listenHost: config.opsHost,
      guard: new LoginGuard({ registry: metrics.registry, log }),
    },
  });
  const opsServer = await startHttpServer(opsApp, {
    name: "the ad server's ops listener",
    host: config.opsHost,
    port: config.opsPort,
    log,
    limits: OPS_LISTENER_LIMITS,
  });
  // It stops last, so that the stop can be watched.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  return opsServer.port;
}
