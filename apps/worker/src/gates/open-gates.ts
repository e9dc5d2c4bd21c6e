import { ProviderGates } from "@adrelay/ledger";
import { groupByProvider } from "@adrelay/provider";
import type { DeliveryQueue } from "@adrelay/queue";
import { withDeadline } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { WorkerConfig } from "../config.ts";
import { makeRelease } from "../jobs/release/release.ts";
import { countPlaces } from "./count-places.ts";
import { createGateMetrics } from "./gate-metrics.ts";
import { Gatekeeper } from "./gatekeeper.ts";

interface GateParts {
  readonly log: Logger;
  readonly registry: Registry;
  /** Fails fast. */
  readonly redis: Redis;
  /** Waits for Redis as long as it takes: what an attempt found out must be told. */
  readonly workerRedis: Redis;
  readonly queue: DeliveryQueue;
}

const FIRST_LOOK_TIMEOUT_MS = 1000;

/** The gates of the providers, and what brings waiting acknowledgments back. */
export function openGates(
  { settings, publishers }: WorkerConfig,
  { log, registry, redis, workerRedis, queue }: GateParts,
) {
  const rules = {
    probeIntervalMs: settings.BREAKER_PROBE_INTERVAL_MS,
    recoveryRatePerSecond: settings.RECOVERY_RATE_PER_SECOND,
  };
  const groups = groupByProvider(publishers);
  const attemptsMax = settings.WORKER_CONCURRENCY;
  const names = groups.map(({ name }) => name);
  const metrics = createGateMetrics(registry, names);
  const gates = new ProviderGates({ redis: workerRedis, ...rules });
  const gatekeeper = new Gatekeeper({ gates, groups, attemptsMax, metrics, log });
  const release = makeRelease({ gates: new ProviderGates({ redis, ...rules }), gatekeeper, groups, queue });
  return {
    gatekeeper,
    release,
    /** How many acknowledgments the worker may hold at once. */
    places: countPlaces(attemptsMax, groups.length),
    /** To be done before the first attempt, which must know what other workers have found out; bounded. */
    lookFirst: () => withDeadline(lookFirst(gatekeeper, release, log), FIRST_LOOK_TIMEOUT_MS),
  };
}

async function lookFirst(gatekeeper: Gatekeeper, release: () => Promise<void>, log: Logger): Promise<void> {
  try {
    await gatekeeper.retryNow();
    await release();
  } catch (err) {
    log.warn({ event: "release_failed", err });
  }
}
