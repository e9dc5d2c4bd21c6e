import { z } from "zod";
import { jobTraceparentSchema } from "../http/trace-context.ts";
import { adAckIdSchema, adResponseIdSchema, isFoldedUuid, isPublisherId, publisherIdSchema } from "../ids.ts";

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

/**
 * Reads a job's data; undefined if the schema refuses them. Data that are as we write them are known at a look, since
 * each attempt reads some: the schema takes several times as long, and judges all others.
 */
export function readDeliveryJob(data: unknown): DeliveryJob | undefined {
  const isKnown = typeof data === "object" && data !== null && isAsWritten(data);
  return isKnown ? data : deliveryJobSchema.safeParse(data).data;
}

const REQUIRED_MEMBERS = 6;

/** One that is traced is left to the schema: few are. */
function isAsWritten(data: Partial<Record<keyof DeliveryJob, unknown>>): data is DeliveryJob {
  const { v, adResponseId, adAckId, publisher, body, requestId, replyTo } = data;
  return (
    v === DELIVERY_JOB_VERSION &&
    isFoldedUuid(adResponseId) &&
    isFoldedUuid(adAckId) &&
    isPublisherId(publisher) &&
    typeof body === "string" &&
    typeof requestId === "string" &&
    (replyTo === undefined || typeof replyTo === "string") &&
    Object.keys(data).length === REQUIRED_MEMBERS + (replyTo === undefined ? 0 : 1)
  );
}
