import type { DashboardSpec } from "./dashboard-spec.ts";
import { ledgerIncrease, ledgerPerMinute, orOneZero, orZero, quantile } from "./promql.ts";

const CHOSEN = '{publisher=~"$publisher"}';

/** What one publisher's ads come to. */
export const PUBLISHER: DashboardSpec = {
  name: "publisher",
  title: "Adrelay: Publisher",
  description:
    "What the ads of the chosen publishers come to: to find out whose code path leaks, and to tell them.",
  hasPublisherChoice: true,
  panels: [
    {
      kind: "number",
      title: "Which share of its ads is missed, last hour?",
      description: "Above 2 %: runbook missed-ratio-high. Above 14 %: missed-burn.",
      unit: "percentunit",
      queries: [{ expr: orZero(`max(adrelay:ads_missed:ratio1h${CHOSEN})`), legend: "missed" }],
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
      description: "Delivered all the same. Many: have it send earlier, or raise ACK_DEADLINE_MS.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_late_total", CHOSEN), legend: "late" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many of its dead letters stand now?",
      description: "`adrelay dead list --publisher ID`, then replay once the cause is mended.",
      unit: "short",
      queries: [{ expr: orZero(`sum(adrelay:dead_letters:sum${CHOSEN})`), legend: "standing" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many ads await their acknowledgment?",
      description: "More than it can answer within the deadline: soon they are missed.",
      unit: "short",
      queries: [
        {
          expr: orZero(
            'sum(max by (publisher) (adrelay_acknowledgments{publisher=~"$publisher",state="awaiting"}))',
          ),
          legend: "awaiting",
        },
      ],
    },
    {
      kind: "number",
      title: "How many acknowledgments were delivered?",
      description: "What it can be paid for.",
      unit: "short",
      queries: [
        { expr: ledgerIncrease("adrelay_acknowledgments_delivered_total", CHOSEN), legend: "delivered" },
      ],
    },
    {
      kind: "lines",
      title: "What comes of its injections?",
      description:
        "ok is an ad. fallback, abandoned: the provider failed or was too slow for its time limit.",
      unit: "cpm",
      queries: [
        {
          expr: orOneZero(
            `sum by (outcome) (60 * max by (publisher, outcome) (rate(adrelay_injections_recorded_total${CHOSEN}[$__rate_interval])))`,
          ),
          legend: "{{outcome}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "What becomes of its acknowledgments?",
      description: "accepted should follow its ads, delivered should follow accepted.",
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
      title: "Does it miss more than it did?",
      description: "The last five minutes against the last hour. A step is a release; tell it when.",
      unit: "percentunit",
      queries: [
        { expr: orOneZero(`adrelay:ads_missed:ratio5m${CHOSEN}`), legend: "{{publisher}}, 5 minutes" },
        { expr: orOneZero(`adrelay:ads_missed:ratio1h${CHOSEN}`), legend: "{{publisher}}, 1 hour" },
      ],
      alarmFrom: 0.02,
    },
    {
      kind: "lines",
      title: "How long does it take to acknowledge?",
      description: "Near ACK_DEADLINE_MS its ads are about to be missed.",
      unit: "s",
      queries: [
        {
          expr: quantile(0.5, "adrelay_acknowledgment_delay_seconds", { selector: CHOSEN }),
          legend: "half",
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
      description: "missed and dead are unpaid, awaiting and queued may still be paid.",
      unit: "short",
      queries: [
        {
          expr: orOneZero(`sum by (state) (max by (publisher, state) (adrelay_acknowledgments${CHOSEN}))`),
          legend: "{{state}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Why do its acknowledgments die?",
      description: "docs/operations.md has a line for each reason.",
      unit: "short",
      queries: [
        {
          expr: orOneZero(`sum by (reason) (max by (publisher, reason) (adrelay_dead_letters${CHOSEN}))`),
          legend: "{{reason}}",
        },
      ],
    },
  ],
};
