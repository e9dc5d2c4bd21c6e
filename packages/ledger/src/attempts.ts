/** What workers ask of the ledger for each attempt, as scripts take it: many at once. */
import { isLowerCaseUuid } from "@adrelay/contract";
import { ATTEMPTS_KEPT, type LedgerEntry, numberOf, stateOf, textOf } from "./entry.ts";
import { type LedgerKeys, memberOf } from "./keys.ts";
import type { BeginRequest, Settlement } from "./ledger.ts";
import { ACCEPT_CODES, type AcceptCode, decodeReply } from "./reply-codes.ts";
import type { ScriptCall } from "./scripts.ts";

/** How an acknowledgment stands when an attempt at it begins. */
export type Standing = Pick<
  LedgerEntry,
  "state" | "nextAttemptAtMs" | "queuedAtMs" | "attempts" | "failedAttempts" | "deadReason"
>;

type BookedAccept = "accepted" | "accepted_late" | "accepted_unknown" | "repeat";
export type BeginResult =
  | { readonly kind: BookedAccept; readonly nowMs: number; readonly entry: Standing }
  | { readonly kind: Exclude<AcceptCode, BookedAccept> };

/** All in one call have the field of the first: there is one queue. */
export function callOfBegin(keys: LedgerKeys, asked: readonly BeginRequest[]): ScriptCall {
  const members = asked.map(({ id }) => memberOf(id));
  const args = asked.flatMap(({ publisher, textHash }, at) => [members[at] ?? "", publisher, textHash]);
  return {
    keys: [...keys.forBatch(members), ...asked.map(({ payload }) => payload.key)],
    args: [asked[0]?.payload.field ?? "", ...args],
  };
}

/** Reads the text that scripts tell of how one stands. Throws a LedgerReplyError for one that it never tells. */
export function parseBegin(reply: unknown): BeginResult {
  const [code, ...standing] = String(reply).split(",");
  const kind = decodeReply(ACCEPT_CODES, code);
  switch (kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
    case "repeat":
      return { kind, nowMs: Number(standing[0]), entry: parseStanding(standing) };
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "payload_missing":
      return { kind };
    default:
      return kind satisfies never;
  }
}

function parseStanding([, state, next, queued, attempts, failed, reason]: readonly string[]): Standing {
  return {
    state: stateOf(state),
    nextAttemptAtMs: numberOf(textOf(next, "w"), "w"),
    queuedAtMs: numberOf(textOf(queued, "q"), "q"),
    attempts: numberOf(attempts, "n") ?? 0,
    failedAttempts: numberOf(failed, "f") ?? 0,
    deadReason: textOf(reason, "x"),
  };
}

export function callOfSettle(
  keys: LedgerKeys,
  settlements: readonly Settlement[],
  retentionMs: number,
): ScriptCall {
  return {
    keys: keys.forBatch(settlements.map(({ id }) => memberOf(id))),
    args: [retentionMs, ATTEMPTS_KEPT, ...settlements.flatMap(argsOf)],
  };
}

/** What every settlement has; scripts/settle.lua names each. */
export function argsOfLastWord(settlement: Settlement): (string | number)[] {
  const { id, event, label, code, providerAckId, durationMs, notify } = settlement;
  return [
    memberOf(id),
    event,
    label,
    code,
    isLowerCaseUuid(providerAckId) ? providerAckId.replaceAll("-", "") : (providerAckId ?? ""),
    Math.round(durationMs),
    notify?.channel ?? "",
    notify?.message ?? "",
  ];
}

function argsOf(settlement: Settlement): (string | number)[] {
  const { attemptsBefore, delayMs, isCounted, death } = settlement;
  return [
    ...argsOfLastWord(settlement),
    attemptsBefore,
    delayMs,
    isCounted ? 1 : 0,
    death?.sizeBytes ?? "",
    death?.providerError ?? "",
  ];
}
