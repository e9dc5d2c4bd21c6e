/** Makes every part of the worker and starts it. */
import {
  openRelayBase,
  openRelayStore,
  type RelayAdapters,
  type RelayBase,
  startAnswerJudge,
  startHeartbeat,
  watchPublishers,
} from "@adrelay/relay-kit";
import {
  createOpsApp,
  describeProcess,
  type Environment,
  LoginGuard,
  OPS_LISTENER_LIMITS,
  type RunnableService,
  reportDurability,
  reportMemory,
  startHttpServer,
  withDeadline,
} from "@adrelay/service-kit";
import { type Heartbeat, NO_LIMITS } from "@adrelay/store";
import type { Express } from "express";
import type { Logger } from "pino";
import { startBackgroundJobs } from "./background-jobs.ts";
import { CircuitBreakers } from "./circuit-breakers.ts";
import { CircuitMetrics } from "./circuit-metrics.ts";
import { countJobs } from "./concurrency-limiter.ts";
import type { WorkerConfig } from "./config.ts";
import { makeAttempt } from "./make-attempt.ts";
import { PayloadBudget } from "./payload-budget.ts";
import {
  createWorkerMetrics,
  makeReportAttempt,
  reportPayloads,
  type WorkerMetrics,
} from "./worker-metrics.ts";

const FIRST_RELEASE_TIMEOUT_MS = 1000;
/** After how many intervals of probes an acknowledgment can be a probe again. */
const PROBE_REST_INTERVALS = 3;

export async function compose(config: WorkerConfig, env: Environment): Promise<RunnableService> {
  const { settings } = config;
  const base = await openRelayBase("worker", config, env);
  const { log, lifecycle, registry } = base;
  const adapters = await openStoreOfWorker(base);
  const publishersWatch = await watchPublishers(base);
  const breakers = openBreakers(base, adapters);
  const heartbeat = await startHeartbeat(base, adapters, publishersWatch);
  const { guard } = adapters;
  reportMemory(registry, guard);
  reportDurability(registry, {
    get isDurable() {
      return guard.isDurable && heartbeat.writes.kind === "accepted";
    },
  });
  const metrics = createWorkerMetrics(registry, {
    providersMax: settings.METRICS_PUBLISHERS_MAX,
    deadLetterRetentionMs: settings.DEAD_LETTER_RETENTION,
  });
  const opsServer = await startHttpServer(makeOpsApp(base, { ...adapters, breakers, heartbeat }), {
    name: "the worker's ops listener",
    host: settings.WORKER_OPS_HOST,
    port: settings.WORKER_OPS_PORT,
    log,
    limits: OPS_LISTENER_LIMITS,
  });
  // It stops last, so that the stop can be watched.
  lifecycle.onStopLast("ops listener", (signal) => opsServer.stop(signal));
  await learnFirst(breakers, log);
  startDeliveries(base, { ...adapters, breakers, metrics });
  const { maintenance, rewrites } = adapters.store;
  await startBackgroundJobs({ settings, log, lifecycle, maintenance, rewrites, metrics, breakers });
  const listening = { ops_port: opsServer.port };
  return {
    log,
    lifecycle,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
    listening,
    onHangUp: () => publishersWatch.onHangUp(),
  };
}

type Base = RelayBase<WorkerConfig>;

async function openStoreOfWorker(base: Base): Promise<RelayAdapters> {
  const { settings, publishers } = base.config;
  return openRelayStore(base, {
    delivers: true,
    findAd: await startAnswerJudge(base),
    // A worker accepts nothing but the texts of turns whose proxy is gone.
    intakeRules: (id) => ({
      acceptsUnknown: false,
      limits: NO_LIMITS,
      emptyAnswers: publishers.find(id)?.emptyAnswers,
    }),
    circuitRules: {
      probeIntervalMs: settings.BREAKER_PROBE_INTERVAL_MS,
      recoveryRatePerSecond: settings.RECOVERY_RATE_PER_SECOND,
    },
    process: nameProcess(),
  });
}

/** As operators find it in `adrelay status`. */
function nameProcess(): string {
  const { host, pid } = describeProcess();
  return `worker ${host}/${pid}`;
}

function openBreakers({ config, log, registry }: Base, { store }: RelayAdapters): CircuitBreakers {
  const { publishers } = config;
  const bytesMax = config.settings.WORKER_PAYLOAD_BYTES;
  const payloads = new PayloadBudget({ bytesMax, isForOne: () => publishers.current.length === 1 });
  reportPayloads(registry, { bytesMax, heldBytes: () => payloads.heldBytes });
  const breakers = new CircuitBreakers({
    circuits: store.circuits,
    accounts: publishers.accounts,
    attemptsMax: config.settings.WORKER_CONCURRENCY,
    payloads,
    metrics: new CircuitMetrics(registry, {
      providersMax: config.settings.METRICS_PUBLISHERS_MAX,
      slotsMax: config.settings.WORKER_CONCURRENCY,
    }),
    log,
  });
  publishers.onChange(() => void breakers.replaceAccounts(publishers.accounts));
  return breakers;
}

/** The first attempt must know what other workers have learned. Bounded, because Redis may be down. */
async function learnFirst(breakers: CircuitBreakers, log: Logger): Promise<void> {
  const learned = breakers.retryNow().catch((err: unknown) => log.warn({ event: "release_failed", err }));
  await withDeadline(learned, FIRST_RELEASE_TIMEOUT_MS);
}

function startDeliveries(
  { config: { settings, publishers }, log, lifecycle, tracing }: Base,
  {
    store,
    provider,
    breakers,
    metrics,
  }: RelayAdapters & { readonly breakers: CircuitBreakers; readonly metrics: WorkerMetrics },
): void {
  const countJobsNow = () => countJobs(settings.WORKER_CONCURRENCY, publishers.accounts);
  publishers.onChange(() => store.deliveries.setConcurrency(countJobsNow()));
  store.deliveries.start({
    concurrency: countJobsNow(),
    attemptTimeoutMs: settings.DELIVERY_TIMEOUT_MS,
    attempt: makeAttempt({
      provider,
      breakers,
      metrics,
      tracing,
      log,
      timeoutMs: settings.DELIVERY_TIMEOUT_MS,
      scheduleMs: settings.RETRY_SCHEDULE,
      ageMaxMs: settings.DELIVERY_MAX_AGE,
      probeRestMs: settings.BREAKER_PROBE_INTERVAL_MS * PROBE_REST_INTERVALS,
      random: Math.random,
    }),
    onSettled: makeReportAttempt({ metrics, log }),
  });
  lifecycle.onStop("deliveries", () => store.deliveries.stop());
}

function makeOpsApp(
  { config: { publishers, settings }, log, lifecycle, registry }: Base,
  parts: RelayAdapters & { readonly breakers: CircuitBreakers; readonly heartbeat: Heartbeat },
): Express {
  const { redis, guard, store, breakers, heartbeat } = parts;
  const ledger = store.metrics({
    listPublishers: () => publishers.current.map(({ id }) => id),
    publishersMax: settings.METRICS_PUBLISHERS_MAX,
  });
  return createOpsApp({
    collect: async () => ({ registry, scraped: await ledger.collect() }),
    checks: [
      {
        name: "redis",
        // A full Redis takes nothing new, but deliveries go on.
        check: async () =>
          (await redis.ping()) === "PONG" && guard.isDurable && heartbeat.writes.kind !== "refused",
      },
      { name: "consuming", check: () => Promise.resolve(store.deliveries.isConsuming) },
    ],
    warnings: () => ({ ...guard.warnings(), ...heartbeat.warnings(), ...breakers.warnings() }),
    isStopping: () => lifecycle.isStopping,
    log,
    access: {
      settings,
      listenHost: settings.WORKER_OPS_HOST,
      guard: new LoginGuard({ registry, log }),
    },
  });
}
