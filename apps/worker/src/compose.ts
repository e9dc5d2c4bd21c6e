import { collectWithLedger, DeadLetters, Finisher, Ledger, type Pulse, Replays } from "@adrelay/ledger";
import { ProviderClient } from "@adrelay/provider";
import { DeliveryQueue, DeliveryWorker } from "@adrelay/queue";
import {
  connectRedis,
  createLogger,
  createOpsApp,
  createRegistry,
  type Environment,
  guardRedis,
  Lifecycle,
  openTracing,
  type RunnableService,
  reportDurability,
  startHttpServer,
  type Tracing,
} from "@adrelay/service-kit";
import type { Express } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { WorkerConfig } from "./config.ts";
import type { Gatekeeper } from "./gates/gatekeeper.ts";
import { openGates } from "./gates/open-gates.ts";
import { makeDeliver } from "./jobs/deliver/deliver.ts";
import { makeFinish } from "./jobs/deliver/finish-attempt.ts";
import { Insistence } from "./jobs/deliver/insistence.ts";
import { startJobs } from "./jobs/start-jobs.ts";
import { startPulse } from "./pulse.ts";
import { createWorkerMetrics } from "./worker-metrics.ts";

/** Makes every part of the worker and starts it. */
export async function compose(config: WorkerConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const log = createLogger("worker", settings.LOG_LEVEL);
  const lifecycle = new Lifecycle(log);
  const tracing = await openTracing({ service: "adrelay-worker", env, log });
  lifecycle.onStopLast("traces", () => tracing.stop());
  const base = { config, log, lifecycle, tracing, registry: createRegistry() };
  const adapters = await openAdapters(base);
  const gates = openGates(config, { ...base, ...adapters });
  const worker = makeWorker(base, adapters, gates);
  const pulse = startPulse(base, adapters.redis);
  const opsServer = await startHttpServer(
    makeOpsApp(base, { ...adapters, worker, pulse, gatekeeper: gates.gatekeeper }),
    {
      name: "the worker's ops listener",
      host: settings.WORKER_OPS_HOST,
      port: settings.WORKER_OPS_PORT,
    },
  );
  // Last, so that it can be seen how the stop goes.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  await gates.lookFirst();
  worker.start();
  startJobs({ settings, log, lifecycle, ...adapters, release: gates.release });
  const listening = { ops_port: opsServer.port };
  return { log, lifecycle, shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS, listening };
}

/** What every part is made with. */
interface Base {
  readonly config: WorkerConfig;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly tracing: Tracing;
  readonly registry: Registry;
}

type Adapters = Awaited<ReturnType<typeof openAdapters>>;

async function openAdapters({ config: { settings }, log, lifecycle, registry }: Base) {
  const redis = connectRedis(settings.REDIS_URL, "request", log);
  lifecycle.onStop("redis", () => redis.disconnect());
  const guard = await guardRedis(redis, settings.REDIS_DURABILITY, log);
  reportDurability(registry, guard);
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
  { config: { settings }, log, lifecycle, tracing, registry }: Base,
  { workerRedis, provider }: Adapters,
  { gatekeeper, places }: ReturnType<typeof openGates>,
): DeliveryWorker {
  // An outcome that is known must be booked, however long Redis takes: this connection waits for it.
  const ledgerOptions = { redis: workerRedis, recordRetentionMs: settings.RECORD_RETENTION };
  const insistence = new Insistence({ log, isStopping: () => lifecycle.isStopping });
  const booking = { metrics: createWorkerMetrics(registry), log, insistence };
  const onError = (err: unknown, id: string | undefined) => {
    if (id === undefined) {
      // The queue's own troubles with Redis, several a second while it is away: the connection logs that.
      log.debug({ event: "queue_error", err });
    } else {
      log.warn({ event: "attempt_failed", ad_response_id: id, err });
    }
  };
  const worker = new DeliveryWorker({
    redis: workerRedis,
    concurrency: places,
    attemptTimeoutMs: settings.DELIVERY_TIMEOUT_MS,
    handle: makeDeliver({
      ...booking,
      ledger: new Ledger(ledgerOptions),
      provider,
      gatekeeper,
      tracing,
      timeoutMs: settings.DELIVERY_TIMEOUT_MS,
      scheduleMs: settings.RETRY_SCHEDULE,
      ageMaxMs: settings.DELIVERY_MAX_AGE,
      random: Math.random,
    }),
    finishWith: (completion) =>
      makeFinish({ ...booking, finisher: new Finisher({ ...ledgerOptions, completion }), onError }),
    onError,
    onUnreadable: (jobId) => log.error({ event: "job_unreadable", job_id: jobId }),
  });
  lifecycle.onStop("deliveries", () => {
    // Without Redis no attempt can be booked, and closing would wait for it: what runs is delivered again.
    return workerRedis.status === "ready" ? worker.close() : undefined;
  });
  return worker;
}

function makeOpsApp(
  { config: { publishers }, log, lifecycle, registry }: Base,
  {
    redis,
    guard,
    ledger,
    queue,
    worker,
    pulse,
    gatekeeper,
  }: Adapters & { readonly worker: DeliveryWorker; readonly pulse: Pulse; readonly gatekeeper: Gatekeeper },
): Express {
  return createOpsApp({
    collect: () =>
      collectWithLedger(registry, {
        ledger,
        publishers: publishers.map(({ id }) => id),
        queueDepths: () => queue.counts(),
      }),
    checks: [
      { name: "redis", check: async () => (await redis.ping()) === "PONG" && guard.isDurable },
      { name: "consuming", check: () => Promise.resolve(worker.isConsuming) },
    ],
    warnings: () => ({ ...pulse.warnings(), ...gatekeeper.warnings() }),
    isStopping: () => lifecycle.isStopping,
    log,
  });
}
