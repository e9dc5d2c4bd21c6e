import type { ErrorCode, OutcomeNotice, Verdict } from "@adrelay/contract";
import type { LedgerEntry } from "@adrelay/ledger";

/** How an acknowledgment stands, as its caller is told. */
export type Standing =
  | { readonly kind: "open" }
  | { readonly kind: "delivered"; readonly verdict: Verdict; readonly providerAckId: string | undefined }
  | { readonly kind: "error"; readonly code: ErrorCode };

/**
 * A provider's 409 need not tell the verdict; the acknowledgment arrived, so the caller is told ok. The
 * ledger books it as `unknown`.
 */
const VERDICT_UNTOLD: Verdict = "ok";

/** How a known acknowledgment stands, to a caller that repeats it. */
export function standingOf(entry: LedgerEntry): Standing {
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
      return { kind: "error", code: "not_acknowledgeable" };
    case "queued":
    case "dead":
    case "awaiting":
    case "missed":
      return { kind: "open" };
    default:
      return entry.state satisfies never;
  }
}

/** How an acknowledgment stands after a notice; undefined if the caller had better wait on. */
export function standingAfter(notice: OutcomeNotice, leftMs: number): Standing | undefined {
  switch (notice.event) {
    case "deliver":
      return {
        kind: "delivered",
        verdict: notice.verdict ?? VERDICT_UNTOLD,
        providerAckId: notice.providerAckId,
      };
    case "refuse":
      return { kind: "error", code: "not_acknowledgeable" };
    case "die":
      return notice.code === "http_404" ? { kind: "error", code: "unknown_ad_response" } : { kind: "open" };
    case "retry":
      return notice.delayMs < leftMs ? undefined : { kind: "open" };
    default:
      return notice.event satisfies never;
  }
}
