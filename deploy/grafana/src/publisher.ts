import type { DashboardSpec } from "./dashboard-spec.ts";
import {
  ledgerIncrease,
  ledgerOrOneZero,
  ledgerOrZero,
  ledgerPerMinute,
  quantile,
  ratePerSecond,
} from "./promql.ts";

const CHOSEN = '{publisher=~"$publisher"}';

/** The ads of one publisher, or of several. */
export const PUBLISHER: DashboardSpec = {
  name: "publisher",
  title: "Adrelay: Publisher",
  description: "The outcome of the chosen publishers' ads: find out whose code path leaks, and inform them.",
  hasPublisherChoice: true,
  panels: [
    {
      kind: "number",
      title: "What share of its ads was missed, last hour?",
      description: "Above 2 %: runbook missed-ratio-high. Above 14 %: missed-burn.",
      unit: "percentunit",
      queries: [{ expr: ledgerOrZero(`max(adrelay:ads_missed:ratio1h${CHOSEN})`), legend: "missed" }],
      alarmFrom: 0.02,
    },
    {
      kind: "number",
      title: "How many ads were never acknowledged?",
      description: "Nobody is paid for them. The publisher finds them in its logs by ad_response_id.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_missed_total", CHOSEN), legend: "missed" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many acknowledgments came too late?",
      description:
        "They are still delivered. If there are many: ask for earlier ones, or raise ACK_DEADLINE_MS.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_late_total", CHOSEN), legend: "late" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many dead letters does it have now?",
      description: "`adrelay dead list --publisher ID`; replay once the cause is fixed.",
      unit: "short",
      queries: [{ expr: ledgerOrZero(`sum(adrelay:dead_letters:sum${CHOSEN})`), legend: "dead letters" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many ads await their acknowledgment?",
      description: "If it is more than the publisher acknowledges within the deadline, some will be missed.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrZero(
            'sum(max by (environment, publisher) (adrelay_acknowledgments{publisher=~"$publisher",state="awaiting"}))',
          ),
          legend: "awaiting",
        },
      ],
    },
    {
      kind: "number",
      title: "How many acknowledgments were delivered?",
      description: "The ads that the publisher can be paid for.",
      unit: "short",
      queries: [
        { expr: ledgerIncrease("adrelay_acknowledgments_delivered_total", CHOSEN), legend: "delivered" },
      ],
    },
    {
      kind: "lines",
      title: "What is the outcome of its injections?",
      description:
        "ok: an ad. fallback, abandoned: the provider failed, or was too slow for the caller's time limit.",
      unit: "cpm",
      queries: [
        {
          expr: ledgerOrOneZero(
            `sum by (outcome) (60 * max by (environment, publisher, outcome) (rate(adrelay_injections_recorded_total${CHOSEN}[$__rate_interval])))`,
          ),
          legend: "{{outcome}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Why do its injections fall back?",
      description: "What its provider does instead of answering in time. Runbook fallbacks-high.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(
            'adrelay_injections_total{publisher=~"$publisher",outcome="fallback"}',
            "reason",
          ),
          legend: "{{reason}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How are its calls answered?",
      description: "Only 4xx: runbook publisher-refused. 499: the caller hung up. 5xx: our fault, or Redis'.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(`adrelay_publisher_calls_total${CHOSEN}`, "status"),
          legend: "{{status}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "What happens to its acknowledgments?",
      description: "accepted should follow its ads; delivered should follow accepted.",
      unit: "cpm",
      queries: [
        { expr: ledgerPerMinute("adrelay_acknowledgments_accepted_total", CHOSEN), legend: "accepted" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_delivered_total", CHOSEN), legend: "delivered" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_missed_total", CHOSEN), legend: "missed" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_late_total", CHOSEN), legend: "late" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_refused_total", CHOSEN), legend: "refused" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_unknown_total", CHOSEN), legend: "unknown" },
      ],
    },
    {
      kind: "lines",
      title: "How much of its quotas of Redis' memory does it use?",
      description:
        "At 100 % its acknowledgments get 429. The runbook of AdrelayQuotaMet says what to do for each quota.",
      unit: "percentunit",
      queries: [
        {
          expr: `max by (publisher, quota) (adrelay_quota_used_bytes${CHOSEN}) / max by (publisher, quota) (adrelay_quota_limit_bytes${CHOSEN})`,
          legend: "{{publisher}} {{quota}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "What do quotas refuse?",
      description:
        "Calls that a quota of this publisher refused. redis_memory: Redis itself was nearly full.",
      unit: "cpm",
      queries: [
        {
          expr: `sum by (publisher, quota) (60 * rate(adrelay_quota_refused_total${CHOSEN}[$__rate_interval]))`,
          legend: "{{publisher}} {{quota}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Does it miss more than before?",
      description:
        "The last five minutes against the last hour. A step is a release: give the publisher the time.",
      unit: "percentunit",
      queries: [
        { expr: ledgerOrOneZero(`adrelay:ads_missed:ratio5m${CHOSEN}`), legend: "{{publisher}}, 5 minutes" },
        { expr: ledgerOrOneZero(`adrelay:ads_missed:ratio1h${CHOSEN}`), legend: "{{publisher}}, 1 hour" },
      ],
      alarmFrom: 0.02,
    },
    {
      kind: "lines",
      title: "How long does it take to acknowledge?",
      description: "If it gets near ACK_DEADLINE_MS, its ads are about to be missed.",
      unit: "s",
      queries: [
        {
          expr: quantile(0.5, "adrelay_acknowledgment_delay_seconds", { selector: CHOSEN }),
          legend: "50 %",
        },
        {
          expr: quantile(0.99, "adrelay_acknowledgment_delay_seconds", { selector: CHOSEN }),
          legend: "99 %",
        },
      ],
    },
    {
      kind: "lines",
      title: "Where are its ads now?",
      description: "missed and dead are unpaid; awaiting and queued may still be paid.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrOneZero(
            `sum by (state) (max by (environment, publisher, state) (adrelay_acknowledgments${CHOSEN}))`,
          ),
          legend: "{{state}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Why do its acknowledgments die?",
      description: "docs/operations.md explains each reason.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrOneZero(
            `sum by (reason) (max by (environment, publisher, reason) (adrelay_dead_letters${CHOSEN}))`,
          ),
          legend: "{{reason}}",
        },
      ],
    },
  ],
};
