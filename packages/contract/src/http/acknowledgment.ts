import { z } from "zod";
import { adResponseIdSchema } from "../ids.ts";

/** Body of an acknowledgment; the text may be empty, and unknown fields are allowed. */
export const acknowledgmentRequestSchema = z.looseObject({
  ad_response_id: adResponseIdSchema,
  llm_response: z.string({ error: "must be a string" }),
});
export type AcknowledgmentRequest = z.infer<typeof acknowledgmentRequestSchema>;

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
