import { collectWithLedger, Ledger, ProviderGates, type Pulse, Replays } from "@adrelay/ledger";
import { groupByProvider, ProviderClient } from "@adrelay/provider";
import { DeliveryQueue, DeliveryWorker } from "@adrelay/queue";
import {
  connectRedis,
  createLogger,
  createOpsApp,
  createRegistry,
  guardRedis,
  Lifecycle,
  Periodic,
  type RunnableService,
  startHttpServer,
  withDeadline,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { WorkerConfig } from "./config.ts";
import { createGateMetrics } from "./gates/gate-metrics.ts";
import { Gatekeeper } from "./gates/gatekeeper.ts";
import { makeDeliver } from "./jobs/deliver/deliver.ts";
import { makeRelease } from "./jobs/release/release.ts";
import { IDLE_PAUSE_MS, replayOnce } from "./jobs/replay/replay.ts";
import { makeSweep } from "./jobs/sweep/sweep.ts";
import { startPulse } from "./pulse.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";

/** How often the gates are looked at. */
const RELEASE_INTERVAL_MS = 100;
const FIRST_LOOK_TIMEOUT_MS = 1000;

/** Makes every part of the worker and starts it. */
export async function compose(config: WorkerConfig): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("worker", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const base = { config, log, lifecycle, registry: createRegistry() };
  const adapters = await openAdapters(base);
  const { ledger, queue, replays } = adapters;
  const gateParts = makeGates(base, adapters);
  const worker = makeWorker(base, adapters, gateParts.gatekeeper);
  const pulse = startPulse(base, adapters.redis);
  const isStopping = () => lifecycle.isStopping;
  const deadLetterRetentionMs = settings.DEAD_LETTER_RETENTION;
  const sweeper = new Periodic(
    makeSweep({ ledger, queue, log, deadLetterRetentionMs, isStopping }),
    settings.SWEEP_INTERVAL_MS,
    (err) => log.warn({ event: "sweep_failed", err }),
  );
  lifecycle.onStop("sweep", () => sweeper.stop());
  const releaser = new Periodic(gateParts.release, RELEASE_INTERVAL_MS, (err) =>
    log.debug({ event: "release_failed", err }),
  );
  lifecycle.onStop("release", () => releaser.stop());
  const replayer = new Periodic(
    () => replayOnce({ ledger, queue, replays, log, isStopping }),
    IDLE_PAUSE_MS,
    (err) => log.warn({ event: "replay_failed", err }),
  );
  lifecycle.onStop("replays", () => replayer.stop());
  const opsServer = await startHttpServer(makeOpsApp(base, { ...adapters, worker, pulse }), {
    name: "the worker's ops listener",
    host: settings.WORKER_OPS_HOST,
    port: settings.WORKER_OPS_PORT,
  });
  // Last, so that it can be seen how the stop goes.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  await withDeadline(gateParts.firstLook(), FIRST_LOOK_TIMEOUT_MS);
  worker.start();
  sweeper.start();
  releaser.start();
  replayer.start();
  const listening = { ops_port: opsServer.port };
  return { log, lifecycle, shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS, listening };
}

/** What every part is made with. */
interface Base {
  readonly config: WorkerConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly registry: Registry;
}

type Adapters = Awaited<ReturnType<typeof openAdapters>>;

async function openAdapters({ config: { settings }, log, lifecycle }: Base) {
  const redis = connectRedis(settings.REDIS_URL, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const guard = await guardRedis(redis, settings.REDIS_DURABILITY, log);
  const workerRedis = connectRedis(settings.REDIS_URL, "worker", log);
  lifecycle.onStop("redis of the queue", () => workerRedis.disconnect());
  const ledgerOptions = { redis, recordRetentionMs: settings.RECORD_RETENTION };
  const ledger = new Ledger(ledgerOptions);
  const replays = new Replays(ledgerOptions);
  const queue = new DeliveryQueue({ redis });
  lifecycle.onStop("queue", () => queue.close());
  const provider = new ProviderClient();
  lifecycle.onStop("provider", () => provider.close());
  return { redis, guard, workerRedis, ledger, replays, queue, provider };
}

/** The gates of the providers, what brings waiting acknowledgments back, and the look before the first attempt. */
function makeGates(
  { config: { settings, publishers }, log, registry }: Base,
  { redis, workerRedis, queue }: Adapters,
) {
  const rules = {
    probeIntervalMs: settings.BREAKER_PROBE_INTERVAL_MS,
    recoveryRatePerSecond: settings.RECOVERY_RATE_PER_SECOND,
  };
  const groups = groupByProvider(publishers);
  const names = groups.map(({ name }) => name);
  const gatekeeper = new Gatekeeper({
    gates: new ProviderGates({ redis: workerRedis, ...rules }),
    groups,
    attemptsMax: settings.WORKER_CONCURRENCY,
    metrics: createGateMetrics(registry, names),
    log,
  });
  const release = makeRelease({ gates: new ProviderGates({ redis, ...rules }), gatekeeper, groups, queue });
  const firstLook = () =>
    gatekeeper
      .retryNow()
      .then(release)
      .catch((err: unknown) => log.warn({ event: "release_failed", err }));
  return { gatekeeper, release, firstLook };
}

/** Enough for each provider to have its share; a bound on what one process holds at once. */
const PLACES_MAX = 1000;

function makeWorker(
  { config: { settings, publishers }, log, lifecycle, registry }: Base,
  { workerRedis, queue, provider }: Adapters,
  gatekeeper: Gatekeeper,
): DeliveryWorker {
  const providers = groupByProvider(publishers).length;
  const perProvider = settings.WORKER_CONCURRENCY;
  const worker = new DeliveryWorker({
    redis: workerRedis,
    concurrency: Math.max(perProvider, Math.min(perProvider * providers, PLACES_MAX)),
    attemptTimeoutMs: settings.DELIVERY_TIMEOUT_MS,
    handle: makeDeliver({
      // An outcome that is known must be booked, however long Redis takes: this connection waits for it.
      ledger: new Ledger({ redis: workerRedis, recordRetentionMs: settings.RECORD_RETENTION }),
      queue,
      provider,
      gatekeeper,
      metrics: createWorkerMetrics(registry),
      log,
      timeoutMs: settings.DELIVERY_TIMEOUT_MS,
      scheduleMs: settings.RETRY_SCHEDULE,
      ageMaxMs: settings.DELIVERY_MAX_AGE,
      random: Math.random,
    }),
    onError: (err, id) => {
      if (id === undefined) {
        // The queue's own troubles with Redis, several a second while it is away: the connection logs that.
        log.debug({ event: "queue_error", err });
      } else {
        log.warn({ event: "attempt_failed", ad_response_id: id, err });
      }
    },
    onUnreadable: (jobId) => log.error({ event: "job_unreadable", job_id: jobId }),
  });
  lifecycle.onStop("deliveries", () => {
    // Without Redis no attempt can be booked, and closing would wait for it: what runs is delivered again.
    return workerRedis.status === "ready" ? worker.close() : undefined;
  });
  return worker;
}

function makeOpsApp(
  { log, lifecycle, registry }: Base,
  {
    redis,
    guard,
    ledger,
    queue,
    worker,
    pulse,
  }: Adapters & { readonly worker: DeliveryWorker; readonly pulse: Pulse },
): Express {
  return createOpsApp({
    collect: () => collectWithLedger(registry, { ledger, queueDepths: () => queue.counts() }),
    checks: [
      { name: "redis", check: async () => (await redis.ping()) === "PONG" && guard.isDurable },
      { name: "consuming", check: () => Promise.resolve(worker.isConsuming) },
    ],
    warnings: () => pulse.warnings(),
    isStopping: () => lifecycle.isStopping,
    log,
  });
}
