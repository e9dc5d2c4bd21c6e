import type { DashboardSpec, PanelSpec } from "./dashboard-spec.ts";
import { findingPanels } from "./findings.ts";
import {
  ledgerIncrease,
  ledgerOrOneZero,
  ledgerOrZero,
  ledgerPerMinute,
  ledgerPerMinuteBy,
  orZero,
  quantile,
  ratePerSecond,
} from "./promql.ts";

const FIRST_BYTE = "adrelay_proxy_first_byte_seconds";
const ADS = "adrelay_turn_ads_total";

const rateOf = (series: string) => orZero(`sum(rate(${series}[$__rate_interval]))`);
const growthOf = (counter: string) => orZero(`sum(increase(${counter}[$__range]))`);

/** How long a part of the wait for the first byte takes. */
const firstByte = (part: string, title: string, description: string): PanelSpec => ({
  kind: "lines",
  title,
  description,
  unit: "s",
  queries: [0.5, 0.99].map((share) => ({
    expr: quantile(share, FIRST_BYTE, { selector: `{part="${part}"}` }),
    legend: `${share * 100} %`,
  })),
});

/** Model calls through the proxy: their ads, their turns, and the text that is acknowledged. */
export const TURNS: DashboardSpec = {
  name: "turns",
  title: "Adrelay: Turns",
  description:
    "Answers of models that pass through the proxy: which get ads, how long their readers wait, and whether each is acknowledged with what was written.",
  hasPublisherChoice: false,
  panels: [
    {
      kind: "number",
      title: "How many turns are open?",
      description:
        "Ads in answers that still run, or wait for a next step. It falls to 0 within PROXY_TURN_WAIT_MS after the last call.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrZero("sum(max by (environment, publisher) (adrelay_turns_open))"),
          legend: "open",
        },
      ],
    },
    {
      kind: "number",
      title: "How many answers stream now?",
      description: "Through all proxies, with and without an ad. Compare PROXY_CALLS_IN_FLIGHT.",
      unit: "short",
      queries: [{ expr: orZero("sum(adrelay_streams_open)"), legend: "streams" }],
    },
    {
      kind: "number",
      title: "What share of the calls gets an ad?",
      description: "If it falls: Why do calls get no ad? shows the reason.",
      unit: "percentunit",
      queries: [
        {
          expr: `(${rateOf(`${ADS}{outcome="injected"}`)}) / clamp_min(${rateOf(ADS)}, 0.001)`,
          legend: "with an ad",
        },
      ],
    },
    {
      kind: "number",
      title: "How many turns lost their proxy?",
      description: "Acknowledged with what the journal had. More than after a crash: runbook turns-orphaned.",
      unit: "short",
      queries: [
        {
          expr: ledgerIncrease("adrelay_turns_total", '{outcome="orphaned"}'),
          legend: "orphaned",
        },
      ],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "Of how many turns is text lost?",
      description: "Written to readers, and not in the acknowledgment. Runbook turn-text-lost.",
      unit: "short",
      queries: [{ expr: growthOf("adrelay_turns_lost_text_total"), legend: "turns" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many proxies run?",
      description: "0: no model can be called through Adrelay. Runbook proxy-absent, if there was one.",
      unit: "short",
      queries: [{ expr: orZero('sum(up{job="adrelay-proxy"})'), legend: "proxies" }],
      alarmBelow: 1,
    },
    {
      kind: "lines",
      title: "How do turns end?",
      description:
        "cut: the reader or the model was gone. failed: runbook model-failing. superseded: the backend was first.",
      unit: "cpm",
      queries: [
        {
          expr: ledgerPerMinuteBy("outcome", "adrelay_turns_total", "dialect, outcome"),
          legend: "{{outcome}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "What becomes of the ads of calls?",
      description:
        "skipped is a property of the call, fallback a fault or a lack of time. docs/proxy.md has each.",
      unit: "reqps",
      queries: [{ expr: ratePerSecond(ADS, "outcome"), legend: "{{outcome}}" }],
    },
    {
      kind: "lines",
      title: "Why do calls get no ad?",
      description:
        "no_context: runbook ad-context-missing. not_booked, timeout: runbook ads-not-booked. Others: docs/proxy.md.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(`${ADS}{outcome=~"skipped|fallback"}`, "outcome, reason"),
          legend: "{{outcome}} {{reason}}",
        },
      ],
    },
    firstByte(
      "ad",
      "How long does a reader wait for the ad?",
      "From the call's last byte to the model. At most PROXY_INJECTION_TIMEOUT_MS.",
    ),
    firstByte(
      "model",
      "How long does a reader wait for the model?",
      "From the call upstream to the answer's first byte. It is the model's time, not ours.",
    ),
    {
      kind: "lines",
      title: "Which publisher has how many open turns?",
      description: "A line that only grows: its backend never sends the next step, or no worker runs.",
      unit: "short",
      queries: [
        { expr: ledgerOrOneZero("max by (publisher) (adrelay_turns_open)"), legend: "{{publisher}}" },
      ],
    },
    {
      kind: "lines",
      title: "Are all turns accounted for?",
      description:
        "Opened and ended meet after each answer. Imbalance above 0: runbook books-out-of-balance.",
      unit: "cpm",
      queries: [
        { expr: ledgerPerMinute("adrelay_turns_opened_total"), legend: "opened" },
        { expr: ledgerPerMinute("adrelay_turns_total"), legend: "ended" },
        { expr: ledgerOrZero("max(abs(adrelay_books_imbalance))"), legend: "imbalance" },
      ],
    },
    {
      kind: "lines",
      title: "Of which turns isn't all text acknowledged?",
      description:
        "lost: by proxies that still run; runbook turn-text-lost. unread: runbook copy-faults. too long: PROXY_TEXT_LIMIT_BYTES. late: a proxy stood still. not joinable: prompts took too much of Redis, so later steps have no ad.",
      unit: "short",
      queries: [
        { expr: growthOf("adrelay_turns_lost_text_total"), legend: "lost" },
        { expr: growthOf("adrelay_copy_faults_total"), legend: "unread" },
        { expr: growthOf("adrelay_turns_truncated_total"), legend: "too long" },
        { expr: growthOf("adrelay_turns_late_text_total"), legend: "late" },
        { expr: growthOf("adrelay_turns_dropped_prompts_total"), legend: "not joinable" },
        { expr: ledgerIncrease("adrelay_turns_unreadable_total"), legend: "unreadable" },
      ],
    },
    ...findingPanels(),
  ],
};
