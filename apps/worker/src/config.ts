import type { FieldFault } from "@adrelay/contract";
import { openDirectory, type PublisherDirectory, publisherSources } from "@adrelay/provider";
import {
  COMMON_SETTINGS,
  durationBetween,
  durationListType,
  durationType,
  type Environment,
  integerType,
  loadConfig,
  OPS_SETTINGS,
  PROVIDER_SETTINGS,
  portType,
  redisTargetFaults,
  setting,
  sizeBetween,
  textType,
} from "@adrelay/service-kit";
import { ATTEMPT_MAX_MS } from "@adrelay/store";
import { z } from "zod";

const REWRITE_INTERVAL_MAX_MS = 365 * 86_400_000;

export const WORKER_SETTINGS = {
  ...COMMON_SETTINGS,
  ...PROVIDER_SETTINGS,
  ...OPS_SETTINGS,
  WORKER_OPS_HOST: setting(textType, "127.0.0.1", "Address of the worker's ops listener: metrics, health."),
  WORKER_OPS_PORT: setting(portType, "8082", "Port of the worker's ops listener."),
  WORKER_CONCURRENCY: setting(
    integerType(1, 10_000),
    "50",
    "Most attempts of one worker at the same time to one provider account.",
  ),
  WORKER_PAYLOAD_BYTES: setting(
    sizeBetween(1_048_576, 68_719_476_736),
    "33554432",
    "Most bytes of bodies above 8 kB that one worker holds at the same time for its attempts. Others wait in Redis.",
  ),
  DELIVERY_TIMEOUT_MS: setting(
    durationBetween(1, ATTEMPT_MAX_MS),
    "10000",
    "Time limit of an attempt, including the answer's body.",
  ),
  RETRY_SCHEDULE: setting(
    durationListType,
    "5s,30s,2m,10m,30m,1h,2h,4h,8h,12h",
    "Waits after the first, second … failed attempt, ±20 %; the last one repeats.",
  ),
  DELIVERY_MAX_AGE: setting(durationType, "72h", "An acknowledgment older than this becomes a dead letter."),
  BREAKER_PROBE_INTERVAL_MS: setting(
    durationBetween(10, 600_000),
    "5000",
    "While a provider is down, all workers together make one attempt per this interval; a twelfth as many while it refuses our key.",
  ),
  RECOVERY_RATE_PER_SECOND: setting(
    integerType(10, 100_000),
    "100",
    "Most attempts per second of all workers together in the first minute after a provider is back; it doubles each further minute.",
  ),
  SWEEP_INTERVAL_MS: setting(durationBetween(10, 3_600_000), "1000", "How often deadlines are swept."),
  DEAD_LETTER_RETENTION: setting(durationType, "30d", "A dead letter older than this expires."),
  AOF_REWRITE_INTERVAL: setting(
    z.union([z.literal("off").transform(() => 0), durationBetween(60_000, REWRITE_INTERVAL_MAX_MS)], {
      error: "must be off, or a time span such as 24h, from 1m to 365d",
    }),
    "24h",
    "How often workers have Redis rewrite its append-only file, so that what was delivered or erased leaves the disk; off: only when an operator asks.",
  ),
} as const;

/** Variables that are no settings, but named by one. */
export { keyVariables } from "@adrelay/provider";

export type WorkerSettings = z.infer<z.ZodObject<typeof WORKER_SETTINGS>>;

export interface WorkerConfig {
  readonly settings: Readonly<WorkerSettings>;
  readonly publishers: PublisherDirectory;
}

export type WorkerConfigResult =
  | { readonly kind: "ok"; readonly config: WorkerConfig }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads the worker's settings and its publishers. All faults are reported together. */
export function loadWorkerConfig(env: Environment): WorkerConfigResult {
  const loaded = loadConfig(z.object(WORKER_SETTINGS), env);
  const providers = loadConfig(z.object(PROVIDER_SETTINGS), env);
  // `loaded` reports the faults of these settings too.
  const publishers =
    providers.kind === "ok"
      ? openDirectory(publisherSources(providers.config, [], env))
      : ({ kind: "faulty", faults: [] } as const);
  const targetFaults = loaded.kind === "ok" ? redisTargetFaults(loaded.config) : [];
  if (loaded.kind === "ok" && publishers.kind === "ok" && targetFaults.length === 0) {
    return { kind: "ok", config: { settings: loaded.config, publishers: publishers.directory } };
  }
  return {
    kind: "faulty",
    faults: [
      ...(loaded.kind === "faulty" ? loaded.faults : targetFaults),
      ...(publishers.kind === "faulty" ? publishers.faults : []),
    ],
  };
}
