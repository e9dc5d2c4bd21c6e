import { collectWithLedger, DeadLetters, Ledger, Replays } from "@adrelay/ledger";
import { ProviderClient } from "@adrelay/provider";
import { DeliveryQueue, DeliveryWorker } from "@adrelay/queue";
import {
  connectRedis,
  createLogger,
  createOpsApp,
  createRegistry,
  guardRedis,
  Lifecycle,
  type RunnableService,
  startHttpServer,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { WorkerConfig } from "./config.ts";
import { makeDeliver } from "./jobs/deliver/deliver.ts";
import { IDLE_PAUSE_MS, replayOnce } from "./jobs/replay/replay.ts";
import { Periodic } from "./jobs/sweep/periodic.ts";
import { makeSweep } from "./jobs/sweep/sweep.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";

/** Makes every part of the worker and starts it. */
export async function compose(config: WorkerConfig): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("worker", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const base = { config, log, lifecycle, registry: createRegistry() };
  const adapters = await openAdapters(base);
  const { ledger, deadLetters, queue, replays } = adapters;
  const worker = makeWorker(base, adapters);
  const isStopping = () => lifecycle.isStopping;
  const deadLetterRetentionMs = settings.DEAD_LETTER_RETENTION;
  const sweeper = new Periodic(
    makeSweep({ ledger, deadLetters, queue, log, deadLetterRetentionMs, isStopping }),
    settings.SWEEP_INTERVAL_MS,
    (err) => log.warn({ event: "sweep_failed", err }),
  );
  lifecycle.onStop("sweep", () => sweeper.stop());
  const replayer = new Periodic(
    () => replayOnce({ deadLetters, queue, replays, log, isStopping }),
    IDLE_PAUSE_MS,
    (err) => log.warn({ event: "replay_failed", err }),
  );
  lifecycle.onStop("replays", () => replayer.stop());
  const opsServer = await startHttpServer(makeOpsApp(base, adapters, worker), {
    name: "the worker's ops listener",
    host: settings.WORKER_OPS_HOST,
    port: settings.WORKER_OPS_PORT,
  });
  // Last, so that it can be seen how the stop goes.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  worker.start();
  sweeper.start();
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
  const deadLetters = new DeadLetters(ledgerOptions);
  const replays = new Replays(ledgerOptions);
  const queue = new DeliveryQueue({ redis });
  lifecycle.onStop("queue", () => queue.close());
  const provider = new ProviderClient();
  lifecycle.onStop("provider", () => provider.close());
  return { redis, guard, workerRedis, ledger, deadLetters, replays, queue, provider };
}

function makeWorker(
  { config: { settings, publishers }, log, lifecycle, registry }: Base,
  { workerRedis, queue, provider }: Adapters,
): DeliveryWorker {
  const accounts = new Map(publishers.map(({ id, account }) => [id, account]));
  const worker = new DeliveryWorker({
    redis: workerRedis,
    concurrency: settings.WORKER_CONCURRENCY,
    attemptTimeoutMs: settings.DELIVERY_TIMEOUT_MS,
    handle: makeDeliver({
      // An outcome that is known must be booked, however long Redis takes: this connection waits for it.
      ledger: new Ledger({ redis: workerRedis, recordRetentionMs: settings.RECORD_RETENTION }),
      queue,
      provider,
      metrics: createWorkerMetrics(registry),
      log,
      accountOf: (publisher) => accounts.get(publisher),
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
  { redis, guard, ledger, queue }: Adapters,
  worker: DeliveryWorker,
): Express {
  return createOpsApp({
    collect: () => collectWithLedger(registry, { ledger, queueDepths: () => queue.counts() }),
    checks: [
      { name: "redis", check: async () => (await redis.ping()) === "PONG" && guard.isDurable },
      { name: "consuming", check: () => Promise.resolve(worker.isConsuming) },
    ],
    isStopping: () => lifecycle.isStopping,
    log,
  });
}
