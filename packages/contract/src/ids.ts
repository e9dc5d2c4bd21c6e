import { z } from "zod";

/**
 * Ids of the service: UUIDs of any version, in lower case. Schemas fold the case, so that
 * one response has one id however a caller spells it (RFC 9562, section 4).
 */
const uuid = (what: string) =>
  z.guid({ error: `${what} must be a UUID` }).transform((id) => id.toLowerCase());

export const adResponseIdSchema = uuid("ad_response_id").brand<"AdResponseId">();
export type AdResponseId = z.infer<typeof adResponseIdSchema>;

export const adAckIdSchema = uuid("ad_ack_id").brand<"AdAckId">();
export type AdAckId = z.infer<typeof adAckIdSchema>;

/** Whether it is a UUID as our schemas leave it: one that need not be folded. */
export function isFoldedUuid(value: unknown): value is string {
  return typeof value === "string" && FOLDED_UUID.test(value);
}

const FOLDED_UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Writes 32 hex digits as a UUID. */
export function uuidOfHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const PUBLISHER_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** Publishers are named in metrics and keys, so their ids are short and plain. */
export const publisherIdSchema = z
  .string()
  .regex(PUBLISHER_ID, "must be 1 to 64 letters, digits, _ or -")
  .brand<"PublisherId">();
export type PublisherId = z.infer<typeof publisherIdSchema>;

/** Whether it is a publisher's id, as the schema says. */
export function isPublisherId(value: unknown): value is PublisherId {
  return typeof value === "string" && PUBLISHER_ID.test(value);
}
