import { VERDICTS } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { RECORDED_OUTCOMES } from "./injections.ts";

/** A counter of the books as a metric. Its first label is always the publisher. */
export interface LedgerCounter {
  /** Name of the counter in the ledger. */
  readonly source: string;
  readonly metric: string;
  readonly help: string;
  /** Second label, and all values that the ledger books under it. */
  readonly label?: "outcome" | "status" | "reason";
  readonly values?: readonly string[];
}

export const LEDGER_COUNTERS: readonly LedgerCounter[] = [
  {
    source: "recorded",
    metric: "adrelay_injections_recorded_total",
    help: "Injections on the books, by outcome: ok, rejected, no_fill, fallback, abandoned.",
    label: "outcome",
    values: RECORDED_OUTCOMES,
  },
  { source: "accepted", metric: "adrelay_acknowledgments_accepted_total", help: "Acknowledgments taken." },
  {
    source: "unknown",
    metric: "adrelay_acknowledgments_unknown_total",
    help: "Acknowledgments taken without a known injection.",
  },
  {
    source: "delivered",
    metric: "adrelay_acknowledgments_delivered_total",
    help: "Acknowledgments that the provider has, by verdict: ok, no_ad_used, unknown (a 409 that told none).",
    label: "status",
    values: [...VERDICTS, "unknown"],
  },
  {
    source: "refused",
    metric: "adrelay_acknowledgments_refused_total",
    help: "Acknowledgments refused with 406.",
  },
  {
    source: "dead",
    metric: "adrelay_acknowledgments_dead_total",
    help: "Acknowledgments that became dead letters, by reason.",
    label: "reason",
    values: DEAD_REASONS,
  },
  {
    source: "missed",
    metric: "adrelay_acknowledgments_missed_total",
    help: "Deadlines that passed unacknowledged.",
  },
  {
    source: "late",
    metric: "adrelay_acknowledgments_late_total",
    help: "Acknowledgments taken after their deadline.",
  },
  {
    source: "replayed",
    metric: "adrelay_acknowledgments_replayed_total",
    help: "Dead letters put back on the queue.",
  },
  { source: "discarded", metric: "adrelay_acknowledgments_discarded_total", help: "Dead letters discarded." },
  {
    source: "expired",
    metric: "adrelay_acknowledgments_expired_total",
    help: "Dead letters past their retention.",
  },
];
