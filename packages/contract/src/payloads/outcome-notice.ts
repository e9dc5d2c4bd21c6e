import { z } from "zod";
import { verdictSchema } from "../http/acknowledgment.ts";
import { adResponseIdSchema, publisherIdSchema } from "../ids.ts";

/** What a worker tells the gateway that waits for an acknowledgment, over Redis' channels. */
export const outcomeNoticeSchema = z.object({
  adResponseId: adResponseIdSchema,
  publisher: publisherIdSchema,
  event: z.enum(["deliver", "refuse", "die", "retry"]),
  verdict: verdictSchema.optional(),
  code: z.string(),
  providerAckId: z.string().optional(),
  /** Wait before the next attempt; for `retry` alone. */
  delayMs: z.number(),
});
export type OutcomeNotice = z.infer<typeof outcomeNoticeSchema>;
