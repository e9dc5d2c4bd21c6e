/** What the ledger counts for each publisher, and the order in which metrics/publisher-counts.lua returns it. */
import { COUNTED_STATES, VERDICTS } from "@adrelay/contract";
import { DEAD_REASONS, DIALECTS, FINDINGS, TURN_OUTCOMES } from "@adrelay/core";
import { RECORDED_OUTCOMES } from "../intake/injections.ts";

/** A counter of the ledger as a metric. Its first label is always the publisher. */
export interface LedgerCounter {
  /** Name of the counter in Redis. */
  readonly source: string;
  readonly metric: string;
  readonly help: string;
  /** The labels behind the publisher, with commas between, and all values that they can have, in the same form. */
  readonly label?: "outcome" | "status" | "reason" | "dialect" | "dialect,outcome" | "mention,label";
  readonly values?: readonly string[];
}

/** All counters of the ledger. */
export const LEDGER_COUNTERS: readonly LedgerCounter[] = [
  {
    source: "recorded",
    metric: "adrelay_injections_recorded_total",
    help: "Recorded injections, by outcome: ok, rejected, no_fill, fallback, abandoned.",
    label: "outcome",
    values: RECORDED_OUTCOMES,
  },
  { source: "accepted", metric: "adrelay_acknowledgments_accepted_total", help: "Accepted acknowledgments." },
  {
    source: "unknown",
    metric: "adrelay_acknowledgments_unknown_total",
    help: "Acknowledgments accepted without a known injection.",
  },
  {
    source: "delivered",
    metric: "adrelay_acknowledgments_delivered_total",
    help: "Delivered acknowledgments, by verdict: ok, no_ad_used, unknown (a 409 without a verdict).",
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
    help: "Ad responses whose deadline passed without an acknowledgment.",
  },
  {
    source: "late",
    metric: "adrelay_acknowledgments_late_total",
    help: "Acknowledgments accepted after their deadline.",
  },
  {
    source: "replayed",
    metric: "adrelay_acknowledgments_replayed_total",
    help: "Dead letters put back on the queue.",
  },
  {
    source: "discarded",
    metric: "adrelay_acknowledgments_discarded_total",
    help: "Dead letters and queued acknowledgments that an operator discarded.",
  },
  {
    source: "erased",
    metric: "adrelay_acknowledgments_erased_total",
    help: "Dead letters and queued acknowledgments that an erasure ended. They count as discarded, too.",
  },
  {
    source: "expired",
    metric: "adrelay_acknowledgments_expired_total",
    help: "Dead letters past their retention.",
  },
  {
    source: "adopted",
    metric: "adrelay_ad_responses_adopted_total",
    help: "Ad responses that came from a publisher that is gone: awaiting, queued or dead.",
  },
  {
    source: "given",
    metric: "adrelay_ad_responses_given_total",
    help: "Ad responses that this publisher left, and another one adopted.",
  },
  {
    source: "abandoned",
    metric: "adrelay_ad_responses_abandoned_total",
    help: "Ad responses whose turn ended without any text, of publishers with empty_answers: abandon.",
  },
  {
    source: "turns_opened",
    metric: "adrelay_turns_opened_total",
    help: "Turns of the model proxy that were opened: an ad was put into a prompt.",
    label: "dialect",
    values: DIALECTS,
  },
  {
    source: "turns",
    metric: "adrelay_turns_total",
    help: "Turns that ended, by outcome: complete, cut, failed, orphaned (the proxy was gone), superseded (acknowledged by the backend, or erased), manual.",
    label: "dialect,outcome",
    values: DIALECTS.flatMap((dialect) => TURN_OUTCOMES.map((outcome) => `${dialect},${outcome}`)),
  },
  {
    source: "turns_unreadable",
    metric: "adrelay_turns_unreadable_total",
    help: "Turns that were settled without a part of their text, because it couldn't be read.",
  },
  {
    source: "answers",
    metric: "adrelay_answers_total",
    help: "Turns that ended by themselves, by how a reader of their text sees the ad. mention: none, name, link (to the ad's page), foreign (a link to another domain), unknown (not found out). label: whether a mention is marked as an ad.",
    label: "mention,label",
    values: FINDINGS,
  },
  {
    source: "disagreements",
    metric: "adrelay_verdict_disagreements_total",
    help: "Delivered texts of turns of which the provider's verdict contradicts what was found in them. ok: no mention was found. no_ad_used: one was.",
    label: "status",
    values: VERDICTS,
  },
];

/** One number of a publisher: a counter with its label, which is empty if the counter has none. */
export interface CountPlace {
  readonly source: string;
  readonly label: string;
}

/** The counters of a publisher, in their order. */
export const TOTAL_PLACES: readonly CountPlace[] = LEDGER_COUNTERS.flatMap(({ source, values = [""] }) =>
  values.map((label) => ({ source, label })),
);

/** The arguments of metrics/publisher-counts.lua that say what it reads. The open turns are a gauge as the states are. */
export const PLACE_ARGS: readonly (string | number)[] = [
  COUNTED_STATES.length + 1,
  ...COUNTED_STATES,
  "turns",
  TOTAL_PLACES.length,
  ...TOTAL_PLACES.flatMap(({ source, label }) => [source, label]),
  DEAD_REASONS.length,
  ...DEAD_REASONS,
];
