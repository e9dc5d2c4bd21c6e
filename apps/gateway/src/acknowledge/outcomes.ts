/** What a caller is answered: by the entry of its acknowledgment, or by a notice about it. */
import type { ErrorCode, OutcomeNotice, Verdict } from "@adrelay/contract";
import type { EntryState } from "@adrelay/core";
import type { LedgerEntry, OverQuota } from "@adrelay/store";

/** The answer to a caller's acknowledgment. */
export type AcknowledgeOutcome =
  /** Accepted, and not delivered yet. */
  | { readonly kind: "open"; readonly state: EntryState }
  | { readonly kind: "delivered"; readonly verdict: Verdict; readonly providerAckId: string | undefined }
  | OverQuota
  /** `state` is that of the acknowledgment, if one was accepted before. */
  | { readonly kind: "error"; readonly code: ErrorCode; readonly state?: EntryState };

export const QUEUED: AcknowledgeOutcome = { kind: "open", state: "queued" };
const UNKNOWN: AcknowledgeOutcome = { kind: "error", code: "unknown_ad_response", state: "dead" };

/** A provider's 409 may have no verdict. The acknowledgment arrived, so the caller gets ok. */
const VERDICT_UNTOLD: Verdict = "ok";

/** The answer to a repeat of a known acknowledgment. It is the same as after the notice that told the outcome. */
export function outcomeOfEntry(entry: LedgerEntry): AcknowledgeOutcome {
  const { state } = entry;
  switch (entry.state) {
    case "delivered":
      return {
        kind: "delivered",
        verdict: entry.verdict ?? VERDICT_UNTOLD,
        providerAckId: entry.providerAckId,
      };
    case "refused":
    case "discarded":
    case "expired":
    case "unacknowledgeable":
    case "abandoned":
      return { kind: "error", code: "not_acknowledgeable", state };
    case "dead":
      return entry.death.reason === "http_404" && entry.injection === undefined
        ? UNKNOWN
        : { kind: "open", state };
    case "queued":
    case "awaiting":
    case "missed":
      return { kind: "open", state };
    default:
      return entry satisfies never;
  }
}

/**
 * The answer after a notice of a worker, or of a discard. Undefined if the caller should wait for another notice. If the
 * ledger knows the injection, the caller isn't told that it is unknown, whatever the provider says.
 */
export function outcomeOfNotice(
  notice: OutcomeNotice,
  { leftMs, isRecorded }: { readonly leftMs: number; readonly isRecorded: boolean },
): AcknowledgeOutcome | undefined {
  switch (notice.event) {
    case "deliver":
      return {
        kind: "delivered",
        verdict: notice.verdict ?? VERDICT_UNTOLD,
        providerAckId: notice.providerAckId,
      };
    case "refuse":
      return { kind: "error", code: "not_acknowledgeable", state: "refused" };
    case "discard":
      return { kind: "error", code: "not_acknowledgeable", state: "discarded" };
    case "die":
      return notice.code === "http_404" && !isRecorded ? UNKNOWN : { kind: "open", state: "dead" };
    case "retry":
      return notice.delayMs < leftMs ? undefined : QUEUED;
    default:
      return notice.event satisfies never;
  }
}
