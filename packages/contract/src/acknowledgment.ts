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
  jobTraceparentSchema,
  publisherIdSchema,
} from "./ids-and-paths.ts";

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

const STATUS_VALUES = [...VERDICTS, "recoverable_error"] as const;

/** Body of our own 2xx answers to an acknowledgment. `success` is false only for `recoverable_error`. */
export const acknowledgmentResponseSchema = z.object({
  ad_ack_id: adAckIdSchema,
  status: z.enum(STATUS_VALUES),
  success: z.boolean(),
});
/** The body of a 2xx answer to an acknowledgment. */
export type AcknowledgmentResponse = Readonly<z.infer<typeof acknowledgmentResponseSchema>>;

/**
 * What the relay needs of a provider's 2xx answer. `status` decides. `ad_ack_id` shows that the service itself has taken the
 * acknowledgment: `{"status":"ok"}` alone is also what a health check or a placeholder page answers.
 */
export const acknowledgmentAnswerSchema = z.looseObject(
  {
    ad_ack_id: z.string({ error: "must be a string" }).min(1, "must not be empty"),
    status: z.enum(STATUS_VALUES, { error: `must be one of ${STATUS_VALUES.join(", ")}` }),
  },
  { error: "must be a JSON object" },
);
/** A checked 2xx answer of a provider. */
type AcknowledgmentAnswer = z.infer<typeof acknowledgmentAnswerSchema>;

const STATUSES: ReadonlySet<unknown> = new Set(STATUS_VALUES);

/**
 * Parses the body of a provider's 2xx answer with the same result as `acknowledgmentAnswerSchema`. Most bodies are
 * recognized by a few checks, because the schema takes several times as long.
 */
export function parseAcknowledgmentAnswer(body: unknown): z.ZodSafeParseResult<AcknowledgmentAnswer> {
  const isPlain = typeof body === "object" && body !== null && isPlainAnswer(body);
  return isPlain ? { success: true, data: body } : acknowledgmentAnswerSchema.safeParse(body);
}

function isPlainAnswer(
  body: Partial<Record<keyof AcknowledgmentAnswer, unknown>>,
): body is AcknowledgmentAnswer {
  return isLowerCaseUuid(body["ad_ack_id"]) && STATUSES.has(body["status"]);
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
  event: z.enum(["deliver", "refuse", "die", "retry", "discard"]),
  verdict: verdictSchema.optional(),
  code: z.string(),
  providerAckId: z.string().optional(),
  /** Wait before the next attempt, in milliseconds. It has a meaning only for `retry`. */
  delayMs: z.number(),
});
/** A checked outcome notice. */
export type OutcomeNotice = z.infer<typeof outcomeNoticeSchema>;

/**
 * Returns the `paths` that occur more than once in a JSON object. A path is `name` for a member of the outermost object,
 * or `outer.inner` for a member of an object inside it.
 *
 * Of two members with the same name, `JSON.parse` keeps the last, but another parser may keep the first. The relay
 * forwards a body unchanged, so without this check it could accept one id while the provider reads another.
 *
 * @param json text that `JSON.parse` has accepted as an object. For other text the result means nothing
 */
export function duplicateKeys(json: string, paths: readonly string[]): string[] {
  // Only a `\u` escape can spell a plain name in another way.
  if (!json.includes("\\u") && paths.every((path) => occursOnce(json, path))) {
    return [];
  }
  const levels = paths.some((path) => path.includes(".")) ? 2 : 1;
  const counts = new Map<string, number>();
  for (const path of keyPaths(json, levels)) {
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }
  return paths.filter((path) => (counts.get(path) ?? 0) > 1);
}

/** Whether a plain name occurs exactly once in the whole text, as a member's name or as a value. */
function occursOnce(json: string, name: string): boolean {
  const quoted = `"${name}"`;
  const at = json.indexOf(quoted);
  return PLAIN_NAME.test(name) && at !== -1 && !json.includes(quoted, at + 1);
}

const PLAIN_NAME = /^\w+$/;

/** The text before the member names of an open object; undefined if its members are not listed, and for an array. */
type Prefix = string | undefined;

/** The paths of the members of nested objects, down to `levels`. Objects in arrays are left out. */
export function keyPaths(json: string, levels: number): string[] {
  const found: string[] = [];
  const open: Prefix[] = [];
  let path = "";
  let expectsKey = false;
  for (let at = 0; at < json.length; at += 1) {
    const char = json[at];
    if (char === '"') {
      const end = endOfString(json, at);
      if (expectsKey) {
        path = `${open.at(-1) ?? ""}${JSON.parse(json.slice(at, end + 1))}`;
        found.push(path);
        expectsKey = false;
      }
      at = end;
    } else if (char === "{" || char === "[") {
      const isMember = open.length === 0 || open.at(-1) !== undefined;
      const prefix = open.length === 0 ? "" : `${path}.`;
      open.push(char === "{" && isMember && open.length < levels ? prefix : undefined);
      expectsKey = open.at(-1) !== undefined;
    } else if (char === "}" || char === "]") {
      open.pop();
    } else if (char === ",") {
      expectsKey = open.at(-1) !== undefined;
    }
  }
  return found;
}

/** Index of the quote that closes the string opened at `start`. */
function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(json, end)) {
    end = json.indexOf('"', end + 1);
  }
  return end === -1 ? json.length : end;
}

function isEscaped(json: string, quote: number): boolean {
  let backslashes = 0;
  while (json[quote - 1 - backslashes] === "\\") {
    backslashes += 1;
  }
  return backslashes % 2 === 1;
}
