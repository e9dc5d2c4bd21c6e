/** The admin API's view of single acknowledgments, and what operators do with one. */
import { z } from "zod";
import { findingViewSchema, openTurnSchema } from "../acknowledgment-status.ts";
import { circuitReasonSchema, count, textOrNull, time, timeOrNull } from "./fields.ts";

/** The entry states by which the admin API can list acknowledgments. */
export const LISTED_STATES = ["dead", "queued", "awaiting"] as const;

/** The most characters that the reason of a discard can have, as JavaScript counts them. */
export const DISCARD_REASON_CHARS_MAX = 500;

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
