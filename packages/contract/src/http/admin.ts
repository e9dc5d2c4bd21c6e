/**
 * What the admin API answers. Times are ISO 8601 in UTC by Redis' clock; null where there is none (yet).
 * Members that a newer gateway adds are let through: an older reader leaves them out.
 */
import { z } from "zod";

export const ADMIN_PATH = "/admin/v1";

/** Most rows of one page of a list. */
export const PAGE_ROWS_MAX = 500;
/** Most characters of the reason for a discard, as JavaScript counts them. */
export const DISCARD_REASON_CHARS_MAX = 500;
/** Bounds of a bulk replay's speed. */
export const REPLAY_RATE_MAX = 10_000;
export const REPLAY_RATE_DEFAULT = 100;

const time = z.string();
const timeOrNull = time.nullable();
const textOrNull = z.string().nullable();
const count = z.number();

/** The states that the books balance over. */
export const BOOKED_STATES = [
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
export type StateCounts = z.infer<typeof stateCountsSchema>;

/** The states that acknowledgments can be listed by. */
export const LISTED_STATES = ["dead", "queued", "awaiting"] as const;

/** A gateway or worker that has been heard of within the last minute. */
export const processSchema = z.object({
  role: z.string(),
  host: z.string(),
  pid: count,
  version: z.string(),
  started_at: time,
  seen_at: time,
  /** The machine's clock less Redis'; null until it has been measured. */
  clock_skew_ms: z.number().nullable(),
});
export type ProcessView = z.infer<typeof processSchema>;

export const dataLossSchema = z.object({ at: time, detail: z.string() });
export type DataLossView = z.infer<typeof dataLossSchema>;

export const providerStandingSchema = z.object({
  provider: z.string(),
  publishers: z.array(z.string()),
  circuit: z.enum(["closed", "open", "recovering"]),
  reason: z.enum(["outage", "auth", "throttled"]).nullable(),
  since: timeOrNull,
  next_probe_at: timeOrNull,
  parked: count,
});
export type ProviderStanding = z.infer<typeof providerStandingSchema>;

export const statsSchema = z.object({
  at: time,
  version: z.string(),
  states: stateCountsSchema,
  publishers: z.record(z.string(), stateCountsSchema),
  overdue: count,
  oldest_queued_age_seconds: z.number().nullable(),
  oldest_dead_letter_age_seconds: z.number().nullable(),
  queue: z.object({ waiting: count, active: count, delayed: count, failed: count }),
  /** Those that stand now. */
  dead_letters: z.array(z.object({ publisher: z.string(), reason: z.string(), count })),
  providers: z.array(providerStandingSchema),
  processes: z.array(processSchema),
  /** The latest loss of data of the last 24 hours. */
  data_loss: dataLossSchema.nullable(),
});
export type Stats = z.infer<typeof statsSchema>;

export const acknowledgmentViewSchema = z.object({
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
  attempts: count,
  failed_attempts: count,
  provider_ack_id: textOrNull,
});
export type AcknowledgmentView = z.infer<typeof acknowledgmentViewSchema>;

/** Newest first. */
export const acknowledgmentPageSchema = z.object({
  acknowledgments: z.array(acknowledgmentViewSchema),
  next_cursor: textOrNull,
});

export const attemptViewSchema = z.object({
  at: time,
  outcome: z.enum(["deliver", "refuse", "retry", "die"]),
  code: z.string(),
  duration_ms: z.number(),
});

/** One acknowledgment with its latest attempts, oldest first. */
export const acknowledgmentDetailSchema = acknowledgmentViewSchema.extend({
  attempt_log: z.array(attemptViewSchema),
});
export type AcknowledgmentDetail = z.infer<typeof acknowledgmentDetailSchema>;

/** What a replay or a discard of one dead letter answers. */
export const movedSchema = z.object({ ad_response_id: z.string(), state: z.string() });

export const replaySchema = z.object({
  replay_id: z.string(),
  state: z.enum(["running", "completed", "cancelled"]),
  filter: z.object({ publisher: textOrNull, reason: textOrNull, since: timeOrNull, until: timeOrNull }),
  rate_per_second: count,
  matched: count,
  replayed: count,
  created_at: time,
  created_by: z.string(),
  updated_at: time,
  ended_at: timeOrNull,
});
export type ReplayView = z.infer<typeof replaySchema>;

export const dryRunSchema = z.object({ dry_run: z.literal(true), matched: count });
export const replayListSchema = z.object({ replays: z.array(replaySchema) });

export const auditEntrySchema = z.object({
  at: time,
  by: z.string(),
  action: z.enum(["replay", "discard", "replays_start", "replays_cancel"]),
  ad_response_id: textOrNull,
  replay_id: textOrNull,
  details: z.unknown(),
});
export type AuditEntryView = z.infer<typeof auditEntrySchema>;

export const auditPageSchema = z.object({ entries: z.array(auditEntrySchema), next_cursor: textOrNull });

export const CHECK_STATUSES = ["ok", "warn", "fail"] as const;
export const doctorCheckSchema = z.object({
  name: z.string(),
  status: z.enum(CHECK_STATUSES),
  detail: z.string(),
});
export type DoctorCheck = z.infer<typeof doctorCheckSchema>;

export const doctorReportSchema = z.object({ at: time, checks: z.array(doctorCheckSchema) });
export type DoctorReport = z.infer<typeof doctorReportSchema>;
