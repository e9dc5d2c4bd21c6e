import { z } from "zod";
import { jobTraceparentSchema } from "../http/trace-context.ts";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "../ids.ts";

/** Raised when the fields below change their meaning; workers refuse jobs of a version they don't know. */
export const DELIVERY_JOB_VERSION = 1;

/**
 * What the queue keeps of an accepted acknowledgment until it is delivered or refused. It holds no
 * secret: the worker finds the provider's address and key by `publisher` (invariant 6).
 */
export const deliveryJobSchema = z.object({
  v: z.literal(DELIVERY_JOB_VERSION),
  adResponseId: adResponseIdSchema,
  adAckId: adAckIdSchema,
  publisher: publisherIdSchema,
  /** The caller's body as it came, byte for byte as UTF-8 text: providers get exactly this. */
  body: z.string(),
  requestId: z.string(),
  /** Channel on which the accepting gateway waits for the outcome; absent if nobody waits. */
  replyTo: z.string().optional(),
  /** The trace of the request that brought it; absent if there was none, and in jobs of older versions. */
  traceparent: jobTraceparentSchema,
});
export type DeliveryJob = z.infer<typeof deliveryJobSchema>;
