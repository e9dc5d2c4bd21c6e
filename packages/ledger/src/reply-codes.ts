import { redisErrorKind } from "@adrelay/core";

/** What the scripts' numbers mean; nobody else sees a number. */

export const ACCEPT_CODES = {
  1: "accepted",
  2: "accepted_late",
  3: "accepted_unknown",
  4: "repeat",
  5: "conflict",
  6: "not_acknowledgeable",
  7: "other_publisher",
  8: "payload_missing",
} as const;
export type AcceptCode = (typeof ACCEPT_CODES)[keyof typeof ACCEPT_CODES];

/** Of the script that looks up, queues and books in one: it alone knows whether unknown ids are taken. */
export const TAKE_CODES = { ...ACCEPT_CODES, 9: "unknown" } as const;
export type TakeCode = (typeof TAKE_CODES)[keyof typeof TAKE_CODES];

export const BOOKED_CODES = { 1: "booked", 0: "same", "-1": "illegal" } as const;
export type BookedCode = (typeof BOOKED_CODES)[keyof typeof BOOKED_CODES];

export const LEAVE_DEAD_CODES = { 1: "booked", 0: "unknown", "-1": "not_dead" } as const;
export type LeaveDeadCode = (typeof LEAVE_DEAD_CODES)[keyof typeof LEAVE_DEAD_CODES];

export const CLAIM_CODES = { 0: "not_now", 1: "closed", 2: "probe", 3: "granted" } as const;
export type ClaimCode = (typeof CLAIM_CODES)[keyof typeof CLAIM_CODES];
export const CANCEL_CODES = { 1: "cancelled", 0: "unknown", "-1": "ended" } as const;
export type CancelCode = (typeof CANCEL_CODES)[keyof typeof CANCEL_CODES];

/** A script answered something that it never answers: the code and the scripts don't belong together. */
export class LedgerReplyError extends Error {
  override readonly name = "LedgerReplyError";
}

/** Redis refused a command of a script, for want of memory or as a replica: what came before it took effect. */
export class LedgerRefusalError extends Error {
  override readonly name = "LedgerRefusalError";
}

/** Whether Redis may take the same later. */
export function isRefusedForNow(error: unknown): boolean {
  const kind = redisErrorKind(error);
  return kind === "refuses_writes" || kind === "no_permission";
}

/** Looks a script's number up in its table. */
export function decodeReply<T extends Record<string, string>>(codes: T, reply: unknown): T[keyof T] {
  const code = String(reply);
  if (Object.hasOwn(codes, code)) {
    // It is one of the table's own names.
    return codes[code as keyof T];
  }
  throw new LedgerReplyError(`the ledger answered ${code}`);
}

/** A reply that is a list. */
export function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) {
    throw new LedgerReplyError("the ledger sent no list");
  }
  return reply;
}

/** Reads a list of replies, each of which may be an error. One that can't be read spoils no other. */
export function readEach<T>(replies: unknown, read: (reply: unknown, at: number) => T): (T | Error)[] {
  return listOf(replies).map((reply, at) => {
    try {
      return reply instanceof Error ? new LedgerRefusalError(reply.message) : read(reply, at);
    } catch (error) {
      return error instanceof Error ? error : new LedgerReplyError(String(error));
    }
  });
}
