/** The keys of a publisher's callers: what is known of each, and whether it is valid. */
import { z } from "zod";

/** What the relay knows of a caller's key. The key itself is nowhere. */
export interface CallerKey {
  /** A publisher's keys have distinct ids. */
  readonly id: string;
  /** SHA-256 of the key, as 64 lower-case hex digits. */
  readonly digest: string;
  readonly createdAtMs: number | undefined;
  /** From this time on the key is refused. */
  readonly expiresAtMs: number | undefined;
}

/** `expiring`: valid, but not for much longer. */
export const KEY_STATES = ["valid", "expiring", "expired"] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** A key with less time left than this is expiring. */
const EXPIRING_MS = 14 * 86_400_000;

/** The state of a key at a time. */
export function stateOfKey({ expiresAtMs }: CallerKey, nowMs: number): KeyState {
  if (expiresAtMs === undefined || expiresAtMs - nowMs > EXPIRING_MS) {
    return "valid";
  }
  return expiresAtMs > nowMs ? "expiring" : "expired";
}

/** A SHA-256 digest. */
export const digestSchema = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits");

const momentSchema = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], {
    error: "must be a date such as 2027-05-31, or a time such as 2027-05-31T12:00:00Z",
  })
  // A date is its beginning in UTC.
  .transform(Date.parse);

/** A key in the publishers' file. */
export const callerKeySchema = z
  .strictObject({
    id: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, "must be 1 to 64 letters, digits, _, - or dots"),
    sha256: digestSchema,
    created: momentSchema.optional(),
    expires: momentSchema.optional(),
  })
  .refine(({ created, expires }) => created === undefined || expires === undefined || created < expires, {
    error: "expires before it was created",
  })
  .transform(({ id, sha256, created, expires }): CallerKey => {
    return { id, digest: sha256, createdAtMs: created, expiresAtMs: expires };
  });

/** Too few digits to be the key's digest, and enough to tell keys apart. */
const ID_DIGITS = 12;

/** A key of which only the digest is known. Its id is the beginning of the digest. */
export function keyOfDigest(digest: string): CallerKey {
  return { id: digest.slice(0, ID_DIGITS), digest, createdAtMs: undefined, expiresAtMs: undefined };
}
