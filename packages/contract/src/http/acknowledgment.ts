import { z } from "zod";
import { adResponseIdSchema, isFoldedUuid } from "../ids.ts";

/** Body of an acknowledgment; the text may be empty, and unknown fields are allowed. */
export const acknowledgmentRequestSchema = z.looseObject({
  ad_response_id: adResponseIdSchema,
  llm_response: z.string({ error: "must be a string" }),
});
export type AcknowledgmentRequest = z.infer<typeof acknowledgmentRequestSchema>;

/** Reads a body as the schema does; a plain one is known at a look, which takes a fraction of the time. */
export function readAcknowledgmentRequest(
  body: Readonly<Record<string, unknown>>,
): z.ZodSafeParseResult<AcknowledgmentRequest> {
  return isPlainRequest(body) ? { success: true, data: body } : acknowledgmentRequestSchema.safeParse(body);
}

function isPlainRequest(body: Readonly<Record<string, unknown>>): body is AcknowledgmentRequest {
  return isFoldedUuid(body["ad_response_id"]) && typeof body["llm_response"] === "string";
}

/** The verdicts that close an ad cycle. */
export const VERDICTS = ["ok", "no_ad_used"] as const;
export const verdictSchema = z.enum(VERDICTS);
export type Verdict = z.infer<typeof verdictSchema>;

/** Body of every 2xx answer to an acknowledgment. `success` is true but for `recoverable_error`. */
export const acknowledgmentResponseSchema = z.looseObject({
  ad_ack_id: z.guid(),
  status: z.enum([...VERDICTS, "recoverable_error"]),
  success: z.boolean(),
});
export type AcknowledgmentResponse = z.infer<typeof acknowledgmentResponseSchema>;

const STATUSES: ReadonlySet<unknown> = new Set([...VERDICTS, "recoverable_error"]);

/** Reads the body of a 2xx answer as the schema does; most are known at a look, which takes a fraction of the time. */
export function readAcknowledgmentResponse(body: unknown): AcknowledgmentResponse | undefined {
  const isKnown = typeof body === "object" && body !== null && isPlainResponse(body);
  return isKnown ? body : acknowledgmentResponseSchema.safeParse(body).data;
}

function isPlainResponse(
  body: Partial<Record<keyof AcknowledgmentResponse, unknown>>,
): body is AcknowledgmentResponse {
  const { ad_ack_id, status, success } = body;
  return isFoldedUuid(ad_ack_id) && STATUSES.has(status) && typeof success === "boolean";
}
