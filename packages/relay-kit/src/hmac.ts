/**
 * HMAC-SHA-256 of short texts, in plain JavaScript. Node's `createHmac` makes a native object for each call. To release it costs a
 * busy gateway ten times as much as the hash (docs/adr/0073).
 */
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";

/** The HMAC in base64url, 43 characters. Key and text are taken as UTF-8. */
export function hmacOf(key: string, text: string): string {
  return Buffer.from(hmac(sha256, Buffer.from(key), Buffer.from(text))).toString("base64url");
}
