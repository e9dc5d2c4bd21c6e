/** What the scripts' reply codes mean. No other file sees a number. */

export const ACCEPT_CODES = {
  1: "accepted",
  2: "accepted_late",
  3: "accepted_unknown",
  4: "repeat",
  5: "conflict",
  6: "not_acknowledgeable",
  7: "other_publisher",
  8: "payload_missing",
  9: "unknown",
} as const;
export type AcceptCode = (typeof ACCEPT_CODES)[keyof typeof ACCEPT_CODES];

/** `same`: it was booked before, so nothing changed. `illegal`: the entry's state doesn't allow it. */
export const BOOKED_CODES = { 1: "booked", 0: "same", "-1": "illegal" } as const;
export type BookedCode = (typeof BOOKED_CODES)[keyof typeof BOOKED_CODES];

export const LEAVE_DEAD_CODES = { 1: "booked", 0: "unknown", "-1": "not_dead" } as const;
export type LeaveDeadCode = (typeof LEAVE_DEAD_CODES)[keyof typeof LEAVE_DEAD_CODES];

export const CLAIM_CODES = { 0: "not_now", 1: "closed", 2: "probe", 3: "granted" } as const;
export type ClaimCode = (typeof CLAIM_CODES)[keyof typeof CLAIM_CODES];

export const CANCEL_CODES = { 1: "cancelled", 0: "unknown", "-1": "ended" } as const;
export type CancelCode = (typeof CANCEL_CODES)[keyof typeof CANCEL_CODES];

/** A script replied something that it never replies: this code and the scripts don't belong together. */
export class StoreReplyError extends Error {
  override readonly name = "StoreReplyError";
}

/**
 * Redis refused a command within a script, for example because it is full or a replica. Commands before it took effect.
 * The message is Redis' own, so that `redisErrorKind` can classify it.
 */
export class StoreRefusalError extends Error {
  override readonly name = "StoreRefusalError";
}

/** The meaning of a reply code. Throws a StoreReplyError for a code that the table lacks. */
export function decodeReply<T extends Record<string, string>>(codes: T, reply: unknown): T[keyof T] {
  const code = String(reply);
  if (Object.hasOwn(codes, code)) {
    // The check above shows that it is one of the table's own names.
    return codes[code as keyof T];
  }
  throw new StoreReplyError(`a script replied ${code}`);
}

/** A reply that must be a list. */
export function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) {
    throw new StoreReplyError("a script replied no list");
  }
  return reply;
}

/** Reads a list of replies, each of which may be an error. An unreadable reply affects no other. */
export function readEach<T>(replies: unknown, read: (reply: unknown, at: number) => T): (T | Error)[] {
  return listOf(replies).map((reply, at) => {
    try {
      return reply instanceof Error ? new StoreRefusalError(reply.message) : read(reply, at);
    } catch (error) {
      return error instanceof Error ? error : new StoreReplyError(String(error));
    }
  });
}

/** Turns [field, value, field, value …] into an object. */
export function fieldsOf(reply: unknown): Record<string, unknown> {
  if (!Array.isArray(reply)) {
    throw new StoreReplyError("a script replied no list of fields");
  }
  const fields: Record<string, unknown> = {};
  for (let at = 0; at + 1 < reply.length; at += 2) {
    fields[String(reply[at])] = reply[at + 1];
  }
  return fields;
}
