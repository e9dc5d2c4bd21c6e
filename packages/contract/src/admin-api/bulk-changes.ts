/** The admin API's view of bulk replays and bulk discards. */
import { z } from "zod";
import { count, textOrNull, time, timeOrNull } from "./fields.ts";

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

const filterViewSchema = z.object({
  publisher: textOrNull,
  reason: textOrNull,
  /** The provider's own code. An older gateway doesn't send it. */
  code: textOrNull.default(null),
  /** True: only ids that nobody injected through the relay. An older gateway doesn't send it. */
  unknown: z.boolean().nullable().default(null),
  since: timeOrNull,
  until: timeOrNull,
});
/** Which of its ad responses a bulk replay or a bulk discard covers. Null means all. */
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

/** Answer to the dry run of a bulk replay or a bulk discard. */
export const dryRunSchema = z.object({
  dry_run: z.literal(true),
  /** How many its filter matches. */
  matched: count,
  /** False if more match than could be counted in time. An older gateway doesn't send it. */
  complete: z.boolean().default(true),
  /** A filter with this `until` covers none that dies, or is queued, later. An older gateway doesn't send it. */
  until: time.optional(),
});
/** The latest bulk replays, newest first. */
export const replayListSchema = z.object({ replays: z.array(replayViewSchema) });

/** The entry states that a bulk discard can end. */
export const DISCARDED_STATES = ["dead", "queued"] as const;

/** One bulk discard: its filter and its progress. */
export const discardViewSchema = z.object({
  discard_id: z.string(),
  /** Whether it ends dead letters or queued acknowledgments. An older gateway doesn't send it. */
  of: z.enum(DISCARDED_STATES).default("dead"),
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
