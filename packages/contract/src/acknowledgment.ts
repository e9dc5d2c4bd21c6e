/**
 * The second of the ad service's two operations: acknowledge an ad response. Besides request and response, this file
 * has the two messages that an accepted acknowledgment causes inside the relay: the delivery job and the outcome
 * notice.
 */
import { z } from "zod";
import {
  adAckIdSchema,
  adResponseIdSchema,
  isLowerCaseUuid,
  isPublisherId,
  publisherIdSchema,
} from "./ids-and-paths.ts";
import { jobTraceparentSchema } from "./trace-context.ts";

/** Body of an acknowledgment. The text may be empty, and unknown fields are allowed. */
export const acknowledgmentRequestSchema = z.looseObject({
  ad_response_id: adResponseIdSchema,
  llm_response: z.string({ error: "must be a string" }),
});
/** A checked acknowledgment request. */
export type AcknowledgmentRequest = z.infer<typeof acknowledgmentRequestSchema>;

/**
 * Parses a request with the same result as `acknowledgmentRequestSchema`. A body that the schema would return
 * unchanged is recognized by a few checks, because the schema takes several times as long.
 */
export function parseAcknowledgmentRequest(
  body: Readonly<Record<string, unknown>>,
): z.ZodSafeParseResult<AcknowledgmentRequest> {
  return isPlainRequest(body) ? { success: true, data: body } : acknowledgmentRequestSchema.safeParse(body);
}

function isPlainRequest(body: Readonly<Record<string, unknown>>): body is AcknowledgmentRequest {
  return isLowerCaseUuid(body["ad_response_id"]) && typeof body["llm_response"] === "string";
}

/** The verdicts of a provider that end an ad cycle. */
export const VERDICTS = ["ok", "no_ad_used"] as const;
/** Accepts the verdicts that end an ad cycle. */
export const verdictSchema = z.enum(VERDICTS);
/** A provider's final answer about an acknowledgment: the ad was used, or it was not. */
export type Verdict = z.infer<typeof verdictSchema>;

/** Body of every 2xx answer to an acknowledgment. `success` is false only for `recoverable_error`. */
export const acknowledgmentResponseSchema = z.looseObject({
  ad_ack_id: z.guid(),
  status: z.enum([...VERDICTS, "recoverable_error"]),
  success: z.boolean(),
});
/** A checked 2xx answer to an acknowledgment. */
export type AcknowledgmentResponse = z.infer<typeof acknowledgmentResponseSchema>;

const STATUSES: ReadonlySet<unknown> = new Set([...VERDICTS, "recoverable_error"]);

/**
 * Parses the body of a 2xx answer with the same result as `acknowledgmentResponseSchema`; undefined if the schema
 * refuses it. Most bodies are recognized by a few checks, because the schema takes several times as long.
 */
export function parseAcknowledgmentResponse(body: unknown): AcknowledgmentResponse | undefined {
  const isPlain = typeof body === "object" && body !== null && isPlainResponse(body);
  return isPlain ? body : acknowledgmentResponseSchema.safeParse(body).data;
}

function isPlainResponse(
  body: Partial<Record<keyof AcknowledgmentResponse, unknown>>,
): body is AcknowledgmentResponse {
  const { ad_ack_id, status, success } = body;
  return isLowerCaseUuid(ad_ack_id) && STATUSES.has(status) && typeof success === "boolean";
}

/** Version of the delivery job's members. Raise it when a member changes its meaning: workers refuse other versions. */
export const DELIVERY_JOB_VERSION = 1;

/**
 * What the queue keeps of an accepted acknowledgment until it is delivered or refused. It contains no secret: the
 * worker finds the provider's address and key by `publisher` (invariant 6).
 */
export const deliveryJobSchema = z.object({
  v: z.literal(DELIVERY_JOB_VERSION),
  adResponseId: adResponseIdSchema,
  adAckId: adAckIdSchema,
  publisher: publisherIdSchema,
  /** The caller's body, byte for byte as UTF-8 text: the provider gets exactly this. */
  body: z.string(),
  requestId: z.string(),
  /** Channel on which the accepting gateway waits for the outcome. Absent if no gateway waits. */
  replyTo: z.string().optional(),
  /** The trace of the acknowledging request. Absent if it had none, and in jobs of older versions. */
  traceparent: jobTraceparentSchema,
});
/** A checked delivery job. */
export type DeliveryJob = z.infer<typeof deliveryJobSchema>;

/**
 * Parses a job's data with the same result as `deliveryJobSchema`; undefined if the schema refuses them. Data in the
 * form in which we write them are recognized by a few checks: each attempt parses its job, and the schema takes
 * several times as long.
 */
export function parseDeliveryJob(data: unknown): DeliveryJob | undefined {
  const isPlain = typeof data === "object" && data !== null && isPlainJob(data);
  return isPlain ? data : deliveryJobSchema.safeParse(data).data;
}

const REQUIRED_MEMBERS = 6;

/** A job with a traceparent is left to the schema, because few have one. */
function isPlainJob(data: Partial<Record<keyof DeliveryJob, unknown>>): data is DeliveryJob {
  const { v, adResponseId, adAckId, publisher, body, requestId, replyTo } = data;
  return (
    v === DELIVERY_JOB_VERSION &&
    isLowerCaseUuid(adResponseId) &&
    isLowerCaseUuid(adAckId) &&
    isPublisherId(publisher) &&
    typeof body === "string" &&
    typeof requestId === "string" &&
    (replyTo === undefined || typeof replyTo === "string") &&
    Object.keys(data).length === REQUIRED_MEMBERS + (replyTo === undefined ? 0 : 1)
  );
}

/** The message by which a worker sends an attempt's outcome to the waiting gateway, over a Redis channel. */
export const outcomeNoticeSchema = z.object({
  adResponseId: adResponseIdSchema,
  publisher: publisherIdSchema,
  event: z.enum(["deliver", "refuse", "die", "retry"]),
  verdict: verdictSchema.optional(),
  code: z.string(),
  providerAckId: z.string().optional(),
  /** Wait before the next attempt, in milliseconds. It has a meaning only for `retry`. */
  delayMs: z.number(),
});
/** A checked outcome notice. */
export type OutcomeNotice = z.infer<typeof outcomeNoticeSchema>;
