/** The gateway's look-up: what became of one ad response. */
import { z } from "zod";
import { verdictSchema } from "./acknowledgment.ts";

/** A turn of the model proxy that hasn't ended: its dialect, and how many of its steps have begun. */
export const openTurnSchema = z.object({
  /** A newer proxy may have others. */
  dialect: z.string(),
  steps: z.int().positive(),
});
/** A checked open turn. */
export type OpenTurn = Readonly<z.infer<typeof openTurnSchema>>;

/** What the model proxy found of the ad in the text that it acknowledged. */
export const findingViewSchema = z.object({
  /** none, name, link, foreign or unknown. A newer relay may have others. */
  mention: z.string(),
  /** Whether a mention is marked as an ad. */
  labelled: z.boolean(),
});
/** A checked finding. */
export type FindingView = z.infer<typeof findingViewSchema>;

/**
 * Answer of the look-up. Times are ISO 8601 in UTC by Redis' clock; they are null if the event has not happened. `status` is
 * the provider's verdict on a delivered acknowledgment.
 */
export const acknowledgmentStatusSchema = z.object({
  ad_response_id: z.guid(),
  ad_ack_id: z.guid().nullable(),
  /** A newer gateway may send others. */
  state: z.string(),
  status: verdictSchema.nullable(),
  recorded_at: z.iso.datetime().nullable(),
  deadline_at: z.iso.datetime().nullable(),
  accepted_at: z.iso.datetime().nullable(),
  next_attempt_at: z.iso.datetime().nullable(),
  ended_at: z.iso.datetime().nullable(),
  late: z.boolean(),
  attempts: z.int().nonnegative(),
  provider_ack_id: z.string().nullable(),
  last_error_code: z.string().nullable(),
  /** While the ad response is awaiting and the model proxy acknowledges it. An older gateway doesn't send it. */
  turn: openTurnSchema.nullable().default(null),
  /** Once the model proxy has acknowledged the ad response. An older gateway doesn't send it. */
  finding: findingViewSchema.nullable().default(null),
});
/** A checked answer of the look-up. */
export type AcknowledgmentStatus = z.infer<typeof acknowledgmentStatusSchema>;
