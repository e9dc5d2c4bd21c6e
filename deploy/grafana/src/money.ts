import type { DashboardSpec } from "./dashboard-spec.ts";
import {
  ledgerIncrease,
  ledgerOrOneZero,
  ledgerOrZero,
  ledgerPerMinute,
  orOneZero,
  orZero,
  quantile,
} from "./promql.ts";

/** The first dashboard to look at: every way in which an ad goes unpaid. */
export const MONEY: DashboardSpec = {
  name: "money",
  title: "Adrelay: Is money leaking?",
  description:
    "Every way in which an ad goes unpaid. All zeros are good; each panel says what to do otherwise. No data: nobody can read Redis, so nobody knows. Runbook no-data.",
  hasPublisherChoice: false,
  panels: [
    {
      kind: "number",
      title: "How many ads were never acknowledged?",
      description: "Their deadline passed. Find the publisher below, then see runbook missed-ratio-high.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_missed_total"), legend: "missed" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "What share of its ads does the worst publisher miss?",
      description:
        "Of the last hour's ads. Above 2 % a code path leaks; above 14 % something broke. Runbooks missed-ratio-high, missed-burn.",
      unit: "percentunit",
      queries: [{ expr: ledgerOrZero("max(adrelay:ads_missed:ratio1h)"), legend: "worst" }],
      alarmFrom: 0.02,
    },
    {
      kind: "number",
      title: "How many dead letters are there now?",
      description: "Each is an unpaid ad until it is replayed: `adrelay status`, then `adrelay dead replay`.",
      unit: "short",
      queries: [{ expr: ledgerOrZero("sum(adrelay:dead_letters:sum)"), legend: "dead letters" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many acknowledgments did the provider refuse?",
      description:
        "A 406 is the provider's final decision on an ad. If the number grows, ask the provider for the reason.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_refused_total"), legend: "refused" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "Are all ads accounted for?",
      description: "0: each ad is in exactly one state. Any other number: runbook books-out-of-balance.",
      unit: "short",
      queries: [{ expr: "max(abs(adrelay_books_imbalance))", legend: "off by" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many ads are overdue and not swept?",
      description:
        "Above 0 for more than a few seconds: no worker sweeps, so missed ads don't show. Runbook worker-absent.",
      unit: "short",
      queries: [{ expr: "max(adrelay_acknowledgments_overdue)", legend: "overdue" }],
      alarmFrom: 100,
    },
    {
      kind: "lines",
      title: "What happens to acknowledgments?",
      description:
        "Delivered should follow accepted. Every other line is lost money: find its panel on this page.",
      unit: "cpm",
      queries: [
        { expr: ledgerPerMinute("adrelay_acknowledgments_accepted_total"), legend: "accepted" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_delivered_total"), legend: "delivered" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_missed_total"), legend: "missed" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_late_total"), legend: "late" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_refused_total"), legend: "refused" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_dead_total"), legend: "dead" },
      ],
    },
    {
      kind: "lines",
      title: "Which publisher misses its acknowledgments?",
      description:
        "Share of the last hour's ads. One publisher: their release. All at the same time: look at our side first.",
      unit: "percentunit",
      queries: [{ expr: ledgerOrOneZero("adrelay:ads_missed:ratio1h"), legend: "{{publisher}}" }],
      alarmFrom: 0.02,
    },
    {
      kind: "lines",
      title: "Which publisher gets fallbacks instead of ads?",
      description:
        "Share of its injections of the last 15 minutes. One publisher: its provider account. All: the way to the provider. Runbook fallbacks-high.",
      unit: "percentunit",
      queries: [
        {
          expr: orOneZero("adrelay:fallbacks:increase15m / clamp_min(adrelay:injections:increase15m, 1)"),
          legend: "{{publisher}}",
        },
      ],
      alarmFrom: 0.5,
    },
    {
      kind: "lines",
      title: "Where are all ads now?",
      description:
        "Awaiting grows with traffic and falls when deadlines pass; queued grows only while a provider is down.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrOneZero(
            "sum by (state) (max by (environment, publisher, state) (adrelay_acknowledgments))",
          ),
          legend: "{{state}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Why do acknowledgments die?",
      description: "docs/operations.md explains each reason. Fix the cause before you replay.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrOneZero(
            "sum by (reason) (max by (environment, publisher, reason) (adrelay_dead_letters))",
          ),
          legend: "{{reason}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How long does a publisher take to acknowledge an ad?",
      description:
        "If the slowest get near ACK_DEADLINE_MS, raise it. Otherwise ads that were seen will count as missed.",
      unit: "s",
      queries: [
        { expr: quantile(0.5, "adrelay_acknowledgment_delay_seconds"), legend: "50 %" },
        { expr: quantile(0.99, "adrelay_acknowledgment_delay_seconds"), legend: "99 %" },
      ],
    },
    {
      kind: "lines",
      title: "How long does an acknowledgment take to the provider?",
      description:
        "From acceptance, or replay, to delivery. Minutes mean retries or an open circuit breaker: see dashboard Delivery.",
      unit: "s",
      queries: [
        { expr: quantile(0.5, "adrelay_acknowledgment_delivery_lag_seconds"), legend: "50 %" },
        { expr: quantile(0.99, "adrelay_acknowledgment_delivery_lag_seconds"), legend: "99 %" },
      ],
    },
    {
      kind: "lines",
      title: "Which ads can't be paid from the start?",
      description:
        "Abandoned: sold after the caller's time limit; raise the limit. Untracked: Redis was away; runbook redis-not-durable.",
      unit: "cpm",
      queries: [
        {
          expr: ledgerPerMinute("adrelay_injections_recorded_total", '{outcome="abandoned"}'),
          legend: "abandoned",
        },
        {
          expr: orZero("sum(60 * rate(adrelay_injections_untracked_total[$__rate_interval]))"),
          legend: "untracked",
        },
      ],
    },
    {
      kind: "lines",
      title: "How many acknowledgments have an unknown id?",
      description:
        "The relay has no record of the injection: data was lost, the injection was untracked, or a caller made up the id.",
      unit: "cpm",
      queries: [{ expr: ledgerPerMinute("adrelay_acknowledgments_unknown_total"), legend: "unknown" }],
    },
  ],
};
