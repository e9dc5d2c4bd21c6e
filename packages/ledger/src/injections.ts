/** What the gateway tells the ledger of each injection, as scripts/record-injection.lua takes it: many at once. */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { type LedgerKeys, memberOf } from "./keys.ts";
import type { ScriptCall } from "./scripts.ts";

/** What can come of an injection, as it is booked and counted. */
export const RECORDED_OUTCOMES = ["ok", "rejected", "no_fill", "fallback", "abandoned"] as const;

/** An injection's answer, as it is booked. */
export interface InjectionRecord {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
  readonly outcome: (typeof RECORDED_OUTCOMES)[number];
  /** Time until an acknowledgment counts as missed; for `ok` alone. */
  readonly deadlineMs: number;
}

export function callOfRecord(
  keys: LedgerKeys,
  records: readonly InjectionRecord[],
  retentionMs: number,
): ScriptCall {
  return {
    keys: keys.forBatch(records.map(({ id }) => memberOf(id))),
    args: [retentionMs, ...records.flatMap(argsOf)],
  };
}

function argsOf({ id, publisher, outcome, deadlineMs }: InjectionRecord): (string | number)[] {
  const state = outcome === "ok" ? "awaiting" : outcome === "abandoned" ? "abandoned" : "unacknowledgeable";
  return [memberOf(id), publisher, state, outcome, deadlineMs];
}
