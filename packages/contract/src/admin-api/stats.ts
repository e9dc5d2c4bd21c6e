/** The admin API's view of the whole relay: counts, queue, providers, processes and quotas. */
import { z } from "zod";
import { circuitReasonSchema, count, textOrNull, time, timeOrNull } from "./fields.ts";
import { strandedCountsSchema } from "./publishers.ts";

/**
 * The entry states that have a counter for each publisher. The counters must balance over these states. An ad
 * response that can't be acknowledged is in none of them.
 */
export const COUNTED_STATES = [
  "awaiting",
  "queued",
  "delivered",
  "refused",
  "dead",
  "missed",
  "discarded",
  "expired",
] as const;

const stateCountsSchema = z.object({
  awaiting: count,
  queued: count,
  delivered: count,
  refused: count,
  dead: count,
  missed: count,
  discarded: count,
  expired: count,
});
/** A counter for each counted state. That of an end state includes entries that have been forgotten since. */
export type StateCounts = z.infer<typeof stateCountsSchema>;

const processViewSchema = z.object({
  role: z.string(),
  host: z.string(),
  pid: count,
  version: z.string(),
  started_at: time,
  seen_at: time,
  /** The machine's clock minus Redis' clock. Null until the process has measured it. */
  clock_skew_ms: z.number().nullable(),
  /** Digest of the publishers' file that is in force there; null without one. An older process doesn't say. */
  publishers_file: z.object({ digest: textOrNull, valid: z.boolean() }).nullable().default(null),
});
/** A gateway or worker that sent a heartbeat within the last minute and isn't gone. */
export type ProcessView = z.infer<typeof processViewSchema>;

const dataLossViewSchema = z.object({ at: time, detail: z.string() });
/** A loss of Redis' data that the relay found. */
export type DataLossView = z.infer<typeof dataLossViewSchema>;

const providerViewSchema = z.object({
  provider: z.string(),
  publishers: z.array(z.string()),
  circuit: z.enum(["closed", "open", "recovering"]),
  reason: circuitReasonSchema.nullable(),
  since: timeOrNull,
  next_probe_at: timeOrNull,
  parked: count,
});
/** A provider account with its publishers and its circuit breaker. `parked` counts the jobs that wait for it. */
export type ProviderView = z.infer<typeof providerViewSchema>;

const foreignCircuitViewSchema = z.object({
  provider: z.string(),
  reason: textOrNull,
  since: timeOrNull,
  /** The process that opened it: its host and pid. */
  process: z.string(),
});
/** An open circuit breaker of a process whose URL or key of a provider isn't this gateway's. */
export type ForeignCircuitView = z.infer<typeof foreignCircuitViewSchema>;

/** A publisher that has ad responses, but isn't in the gateway's settings. */
const gonePublisherViewSchema = strandedCountsSchema.extend({ publisher: z.string() });

/** How much of Redis' memory is used, and which acknowledgments are accepted at that: of all ids, of known ones, or none. */
const storageViewSchema = z.object({
  used_bytes: count,
  /** maxmemory, or the machine's memory if that isn't set; 0 if it isn't known. */
  limit_bytes: count,
  accepts: z.enum(["all", "known", "none"]),
});

const quotaViewSchema = z.object({
  publisher: z.string(),
  quota: z.string(),
  /** Null if it isn't a quota of Redis' memory: each gateway has its own count of requests then. */
  used_bytes: count.nullable(),
  /** Null if there is no limit, and of a quota without `used_bytes`. */
  limit_bytes: count.nullable(),
  /** How many requests the gateway that answers has refused because of it since its start. */
  refused: count,
});
/** A publisher's quota that it uses, or that has refused something. */
export type QuotaView = z.infer<typeof quotaViewSchema>;

/** Answer of `GET /stats`: counts, queue, providers and processes of the relay at one time. */
export const statsSchema = z.object({
  at: time,
  version: z.string(),
  states: stateCountsSchema,
  publishers: z.record(z.string(), stateCountsSchema),
  /** Turns of the model proxy that haven't ended, by publisher. An older gateway doesn't send it. */
  open_turns: z.record(z.string(), count).default({}),
  /** Null for an operator of some publishers, as are `queue` and `processes`. */
  overdue: count.nullable(),
  oldest_queued_age_seconds: z.number().nullable(),
  oldest_dead_letter_age_seconds: z.number().nullable(),
  queue: z.object({ waiting: count, active: count, delayed: count, failed: count }).nullable(),
  /** The dead letters at this time, counted by publisher and reason. */
  dead_letters: z.array(z.object({ publisher: z.string(), reason: z.string(), count })),
  providers: z.array(providerViewSchema),
  /** An older gateway doesn't send it. */
  foreign_circuits: z.array(foreignCircuitViewSchema).default([]),
  /** An older gateway doesn't send it. */
  gone_publishers: z.array(gonePublisherViewSchema).default([]),
  /** Null if Redis doesn't say. An older gateway doesn't send it. */
  storage: storageViewSchema.nullable().default(null),
  /** An older gateway doesn't send it. */
  quotas: z.array(quotaViewSchema).default([]),
  processes: z.array(processViewSchema).nullable(),
  /** The latest loss of data within the last 24 hours. */
  data_loss: dataLossViewSchema.nullable(),
});
/** A checked answer of `GET /stats`. */
export type Stats = z.infer<typeof statsSchema>;
