/** What is made from an acknowledgment alone, so that every process makes the same: its id, and its text's fingerprint. */
import { createHash, hash } from "node:crypto";
import { type AdAckId, type AdResponseId, type PublisherId, uuidOfHex } from "@adrelay/contract";

/**
 * The relay's id of an acknowledgment. It is made from ad_response_id, so that every process gives the same one without
 * asking, before and after a crash. It is a UUID of version 8 (RFC 9562, section 5.8).
 */
export function ackIdOf(id: AdResponseId): AdAckId {
  const hex = hash("sha256", `adrelay:acknowledgment:${id}`, "hex");
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  const uuid = uuidOfHex(`${hex.slice(0, 12)}8${hex.slice(13, 16)}${variant}${hex.slice(17, 32)}`);
  // Not checked, because it was made here, and the check would take as long as all the rest.
  return uuid as AdAckId;
}

/**
 * Fingerprint of what a publisher acknowledged: 132 bits of SHA-256. It hashes UTF-16, so that texts that differ only
 * in lone surrogates, which UTF-8 can't hold, have different fingerprints.
 */
export function textHashOf(publisher: PublisherId, text: string): string {
  if (text.length > PIECE_CHARACTERS) {
    return longTextHashOf(publisher, text);
  }
  // One call: hashing a short text piece by piece takes twice as long.
  const textAt = SHORT.write(`${publisher}\0`, "latin1");
  const end = textAt + SHORT.write(text, textAt, "utf16le");
  return hash("sha256", SHORT.subarray(0, end), "base64url").slice(0, 22);
}

const PIECE_CHARACTERS = 32_768;
const PUBLISHER_CHARACTERS_MAX = 64;
/** For all short texts, one after the other. With a buffer of its own for each, a fingerprint takes half as long again. */
const SHORT = Buffer.allocUnsafeSlow(PUBLISHER_CHARACTERS_MAX + 1 + 2 * PIECE_CHARACTERS);

/** The same of a long text, in pieces: a buffer of twice its length takes longer to get than to fill. */
function longTextHashOf(publisher: PublisherId, text: string): string {
  const piece = Buffer.allocUnsafe(2 * PIECE_CHARACTERS);
  const whole = createHash("sha256").update(`${publisher}\0`, "latin1");
  for (let at = 0; at < text.length; at += PIECE_CHARACTERS) {
    const length = piece.write(text.slice(at, at + PIECE_CHARACTERS), 0, "utf16le");
    whole.update(piece.subarray(0, length));
  }
  return whole.digest("base64url").slice(0, 22);
}
