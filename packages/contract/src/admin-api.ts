/**
 * Answers of the ops listener: the admin API and the readiness check. Times are ISO 8601 in UTC by Redis' clock;
 * they are null if the event has not happened. The schemas drop unknown members, so that an older reader works with
 * a newer gateway.
 */
import { z } from "zod";
import { findingViewSchema, openTurnSchema } from "./acknowledgment-status.ts";

/** Path that all calls of the admin API begin with. */
export const ADMIN_PATH = "/admin/v1";

/** The most rows that one page of a list can have. */
export const PAGE_ROWS_MAX = 500;
/** The most characters that the reason of a discard can have, as JavaScript counts them. */
export const DISCARD_REASON_CHARS_MAX = 500;
/** The highest rate of a bulk replay, in dead letters per second. */
export const REPLAY_RATE_MAX = 10_000;
/** The rate of a bulk replay if the operator gives none, in dead letters per second. */
export const REPLAY_RATE_DEFAULT = 100;
/** The share of failures among the letters that ended at which a bulk replay stops, if the operator gives none. */
export const REPLAY_STOP_SHARE_DEFAULT = 0.5;
/** How many letters must have ended before a bulk replay can stop by itself, if the operator gives no number. */
export const REPLAY_SAMPLE_DEFAULT = 20;
/** The highest number that an operator can give for it. */
export const REPLAY_SAMPLE_MAX = 10_000;

/** Lenient, because readers need no more than a text. */
const time = z.string().meta({ format: "date-time" });
const timeOrNull = time.nullable();
const textOrNull = z.string().nullable();
const count = z.number();

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

/** The entry states by which the admin API can list acknowledgments. */
export const LISTED_STATES = ["dead", "queued", "awaiting"] as const;

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

const circuitReasonSchema = z.enum(["outage", "auth", "throttled"]);
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

const strandedCountsSchema = z.object({ dead: count, queued: count, awaiting: count });

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

const acknowledgmentViewSchema = z.object({
  ad_response_id: z.string(),
  ad_ack_id: textOrNull,
  publisher: z.string(),
  state: z.string(),
  status: textOrNull,
  reason: textOrNull,
  reason_text: textOrNull,
  last_code: textOrNull,
  provider_error: textOrNull,
  size_bytes: z.number().nullable(),
  recorded_at: timeOrNull,
  deadline_at: timeOrNull,
  accepted_at: timeOrNull,
  queued_at: timeOrNull,
  next_attempt_at: timeOrNull,
  ended_at: timeOrNull,
  late: z.boolean(),
  /**
   * If it is queued. `publisher`: it waits until its publisher is configured or another one adopts it. `provider`: it waits
   * until the circuit breaker of its provider account closes; `circuit_reason` says why that is open.
   */
  waits_for: z.enum(["publisher", "provider"]).nullable().default(null),
  circuit_reason: circuitReasonSchema.nullable().default(null),
  attempts: count,
  failed_attempts: count,
  provider_ack_id: textOrNull,
  /** While the ad response is awaiting and the model proxy acknowledges it. */
  turn: openTurnSchema.nullable().default(null),
  /** Once the model proxy has acknowledged the ad response. */
  finding: findingViewSchema.nullable().default(null),
});
/** One acknowledgment as lists show it. `state` is the state of its entry, `status` the provider's verdict. */
export type AcknowledgmentView = z.infer<typeof acknowledgmentViewSchema>;

/** One page of acknowledgments, newest first. `next_cursor` is null on the last page. */
export const acknowledgmentPageSchema = z.object({
  acknowledgments: z.array(acknowledgmentViewSchema),
  next_cursor: textOrNull,
});

const attemptViewSchema = z.object({
  at: time,
  outcome: z.enum(["deliver", "refuse", "retry", "die"]),
  /** True for a retry if the provider may have received the attempt; else absent, so that older readers know all outcomes. */
  ambiguous: z.boolean().optional(),
  code: z.string(),
  duration_ms: z.number(),
});

/** One acknowledgment with its latest attempts, oldest attempt first. */
export const acknowledgmentDetailSchema = acknowledgmentViewSchema.extend({
  attempt_log: z.array(attemptViewSchema),
});
/** A checked acknowledgment with its attempts. */
export type AcknowledgmentDetail = z.infer<typeof acknowledgmentDetailSchema>;

/**
 * Answer to a batch of an adoption: how many were adopted by state, and how many an attempt holds. `next_cursor` is null after
 * the last batch.
 */
export const adoptionSchema = z.object({
  from: z.string(),
  to: z.string(),
  adopted: strandedCountsSchema,
  under_way: count,
  next_cursor: textOrNull,
});
/** A checked answer to a batch of an adoption. */
export type AdoptionView = z.infer<typeof adoptionSchema>;

/**
 * Answer to an erasure: how many had a text or a trace of one, how many have none because nothing was accepted, and of how
 * many an attempt is under way. `state` is the state of a single one afterwards, and null for a session. `next_cursor` is null
 * after the last step of a session's search.
 */
export const erasureSchema = z.object({
  erased: count,
  without_text: count,
  under_way: count,
  state: textOrNull,
  next_cursor: textOrNull,
});
/** A checked answer to an erasure. */
export type ErasureView = z.infer<typeof erasureSchema>;

/** Answer to the replay or the discard of one acknowledgment: the state that its entry has afterwards. */
export const acknowledgmentStateSchema = z.object({ ad_response_id: z.string(), state: z.string() });

const filterViewSchema = z.object({
  publisher: textOrNull,
  reason: textOrNull,
  /** The provider's own code. An older gateway doesn't send it. */
  code: textOrNull.default(null),
  since: timeOrNull,
  until: timeOrNull,
});
/** Which dead letters a bulk replay or a bulk discard covers. Null means all. */
export type FilterView = z.infer<typeof filterViewSchema>;

const outcomesViewSchema = z.object({
  delivered: count,
  refused: count,
  discarded: count,
  /** Dead letters again, by reason. */
  dead: z.record(z.string(), count),
  /** Still queued. */
  waiting: count,
});
/** What became of the dead letters that a bulk replay put back on the queue. */
export type OutcomesView = z.infer<typeof outcomesViewSchema>;

/** One bulk replay: its filter, its rate and its progress. */
export const replayViewSchema = z.object({
  replay_id: z.string(),
  /** `stopped`: it stopped by itself, because most of the letters that ended failed again. */
  state: z.enum(["running", "completed", "cancelled", "stopped"]),
  filter: filterViewSchema,
  rate_per_second: count,
  /** It stops at this share of failures once `stop_after` letters have ended. Null: it never stops by itself. */
  stop_at_share: z.number().nullable().default(null),
  stop_after: z.number().nullable().default(null),
  matched: count,
  replayed: count,
  /** Null if the gateway is older and doesn't send it. */
  outcomes: outcomesViewSchema.nullable().default(null),
  created_at: time,
  created_by: z.string(),
  updated_at: time,
  ended_at: timeOrNull,
});
/** A checked bulk replay. */
export type ReplayView = z.infer<typeof replayViewSchema>;

/**
 * Answer to the dry run of a bulk replay or a bulk discard: how many dead letters its filter matches. A filter with this
 * `until` covers no letter that dies later. An older gateway doesn't send it.
 */
export const dryRunSchema = z.object({
  dry_run: z.literal(true),
  matched: count,
  until: time.optional(),
});
/** The latest bulk replays, newest first. */
export const replayListSchema = z.object({ replays: z.array(replayViewSchema) });

/** One bulk discard: its filter and its progress. */
export const discardViewSchema = z.object({
  discard_id: z.string(),
  state: z.enum(["running", "completed", "cancelled"]),
  filter: filterViewSchema,
  matched: count,
  discarded: count,
  created_at: time,
  created_by: z.string(),
  updated_at: time,
  ended_at: timeOrNull,
});
/** A checked bulk discard. */
export type DiscardView = z.infer<typeof discardViewSchema>;
/** The latest bulk discards, newest first. */
export const discardListSchema = z.object({ discards: z.array(discardViewSchema) });

const auditViewSchema = z.object({
  at: time,
  by: z.string(),
  /** Where the operator called from. Older gateways don't send it, nor which publisher it concerned. */
  address: textOrNull.default(null),
  publisher: textOrNull.default(null),
  /** A newer gateway may send others. */
  action: z.string(),
  ad_response_id: textOrNull,
  replay_id: textOrNull,
  /** An older gateway doesn't send it. */
  discard_id: textOrNull.default(null),
  details: z.unknown(),
});
/** One action of an operator, with its time, and the operator's name and address. */
export type AuditView = z.infer<typeof auditViewSchema>;

/** One page of the audit, newest first. `next_cursor` is null on the last page. */
export const auditPageSchema = z.object({ entries: z.array(auditViewSchema), next_cursor: textOrNull });

const doctorCheckSchema = z.object({
  name: z.string(),
  status: z.enum(["ok", "warn", "fail"]),
  detail: z.string(),
});
/** One check of the doctor. `detail` explains the status to a person. */
export type DoctorCheck = z.infer<typeof doctorCheckSchema>;

/** Answer of `GET /doctor`: checks of Redis, providers, workers and clocks. */
export const doctorReportSchema = z.object({ at: time, checks: z.array(doctorCheckSchema) });
/** A checked answer of `GET /doctor`. */
export type DoctorReport = z.infer<typeof doctorReportSchema>;

/** Path of the readiness check, on the ops listener of each process. It needs no token. */
export const READINESS_PATH = "/readyz";

/** Answer of the readiness check. Its HTTP status is 200 if the process is ready, and 503 if not. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  stopping: z.boolean(),
  /** One result for each dependency. */
  checks: z.record(z.string(), z.enum(["ok", "failing"])),
  /** What an operator should know although the process is ready, by name. */
  warnings: z.record(z.string(), z.string()).optional(),
});
/** A checked answer of the readiness check. */
export type Readiness = z.infer<typeof readinessSchema>;
