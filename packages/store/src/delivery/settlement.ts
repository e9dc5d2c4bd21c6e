/** The outcome of an attempt, as it is booked. */
import { type AdResponseId, isLowerCaseUuid, type Verdict } from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import { memberOf } from "../redis/keys.ts";

/** A message for the gateway that waits for this outcome. It is published by the script that books the outcome. */
export interface ChannelNotice {
  readonly channel: string;
  readonly message: string;
}

/** The place of a parked acknowledgment: by the time since when its attempt is due, or at the end. */
export type ParkPlace = { readonly kind: "by_time"; readonly dueAtMs: number } | { readonly kind: "last" };

interface SettlementBase {
  readonly id: AdResponseId;
  /** Short stable name of what happened: `ok`, `http_503`, `timeout` … */
  readonly code: string;
  readonly durationMs: number;
  /** How many attempts were booked when this one began. */
  readonly attemptsBefore: number;
  readonly notify: ChannelNotice | undefined;
}

/** What happens after an attempt that failed and is to be repeated. */
type NextAttempt =
  /** The job is delayed. */
  | { readonly kind: "after_delay"; readonly delayMs: number }
  /** It is parked until the circuit breaker of this account lets it go. */
  | { readonly kind: "parked"; readonly account: string };

/** A delivery or a refusal: the acknowledgment has ended. */
export type FinalSettlement = SettlementBase &
  (
    | {
        readonly event: "deliver";
        /** `unknown`: a 409 that didn't say how the first acknowledgment ended. */
        readonly verdict: Verdict | "unknown";
        readonly providerAckId: string | undefined;
      }
    | { readonly event: "refuse" }
  );

/** The acknowledgment stays with us: it is tried again, or becomes a dead letter. */
export type OpenSettlement = SettlementBase &
  (
    | {
        /** `ambiguous`: the provider may have received the attempt. `retry`: it hasn't, or it asked for another one. */
        readonly event: "retry" | "ambiguous";
        readonly next: NextAttempt;
        /** Whether the failure counts for the acknowledgment. That of a probe doesn't. */
        readonly isCounted: boolean;
        readonly providerError: string | undefined;
      }
    | {
        readonly event: "die";
        readonly reason: DeadReason;
        /** Bytes of the caller's body. */
        readonly sizeBytes: number;
        readonly providerError: string | undefined;
      }
  );

/** The outcome of one attempt. */
export type Settlement = FinalSettlement | OpenSettlement;

export function isFinal(settlement: Settlement): settlement is FinalSettlement {
  return settlement.event === "deliver" || settlement.event === "refuse";
}

const NOTHING_TO_BOOK = Array.from({ length: 8 }, () => "");

/** The first eight arguments of delivery/settle.lua, for delivery/complete.lua. All are '' without a settlement. */
export function argsOfFinal(settlement: FinalSettlement | undefined): (string | number)[] {
  if (settlement === undefined) {
    return NOTHING_TO_BOOK;
  }
  return settlement.event === "deliver"
    ? sharedArgs(settlement, settlement.verdict, settlement.providerAckId)
    : sharedArgs(settlement, "", undefined);
}

/** The thirteen arguments of delivery/settle.lua. */
export function argsOfSettlement(settlement: Settlement): (string | number)[] {
  const { attemptsBefore } = settlement;
  switch (settlement.event) {
    case "deliver":
    case "refuse":
      return [...argsOfFinal(settlement), attemptsBefore, 0, 1, "", ""];
    case "retry":
    case "ambiguous": {
      const { next, isCounted, providerError } = settlement;
      const delayMs = next.kind === "after_delay" ? next.delayMs : 0;
      const shared = sharedArgs(settlement, "", undefined);
      return [...shared, attemptsBefore, delayMs, isCounted ? 1 : 0, "", providerError ?? ""];
    }
    case "die": {
      const { reason, sizeBytes, providerError } = settlement;
      return [
        ...sharedArgs(settlement, reason, undefined),
        attemptsBefore,
        0,
        1,
        sizeBytes,
        providerError ?? "",
      ];
    }
    default:
      return settlement satisfies never;
  }
}

function sharedArgs(
  { id, event, code, durationMs, notify }: Settlement,
  label: string,
  providerAckId: string | undefined,
): (string | number)[] {
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
