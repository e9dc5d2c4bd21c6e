import { createHash, hash } from "node:crypto";
import {
  type AdAckId,
  type AdResponseId,
  adAckIdSchema,
  type PublisherId,
  uuidOfHex,
} from "@adrelay/contract";

/**
 * The relay's id of an acknowledgment: made from ad_response_id, so that every process gives the same one
 * without asking, before and after a crash. A UUID of version 8 (RFC 9562, section 5.8).
 */
export function ackIdOf(id: AdResponseId): AdAckId {
  const bytes = hash("sha256", `adrelay:acknowledgment:${id}`, "buffer").subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return adAckIdSchema.parse(uuidOfHex(bytes.toString("hex")));
}

/**
 * Fingerprint of what a publisher acknowledged: 132 bits of SHA-256. Over UTF-16, so that lone surrogates,
 * which UTF-8 can't hold, still make different texts different.
 */
export function textHashOf(publisher: PublisherId, text: string): string {
  return createHash("sha256")
    .update(`${publisher}\0`)
    .update(Buffer.from(text, "utf16le"))
    .digest("base64url")
    .slice(0, 22);
}
