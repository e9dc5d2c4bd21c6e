import type { DashboardSpec } from "./dashboard-spec.ts";
import { orOneZero, orZero, quantile, ratePerSecond } from "./promql.ts";

const CALLS = "adrelay_http_request_duration_seconds";
const PROVIDER_CALLS = "adrelay_provider_request_duration_seconds";
const INJECTIONS = '{operation="start_injection"}';

function shareOf(part: string, whole: string): string {
  const rateOf = (series: string) => orZero(`sum(rate(${series}[$__rate_interval]))`);
  return `(${rateOf(part)}) / clamp_min(${rateOf(whole)}, 0.001)`;
}

/** The relay as publishers see it. */
export const GATEWAY: DashboardSpec = {
  name: "gateway",
  title: "Adrelay: Gateway",
  description: "What publishers see: how many calls, which answers, how fast, and how often without an ad.",
  hasPublisherChoice: false,
  panels: [
    {
      kind: "number",
      title: "How many calls come in?",
      description: "0: nobody calls, or no call reaches us. Look at what is in front of the gateway.",
      unit: "reqps",
      queries: [{ expr: orZero(`sum(rate(${CALLS}_count[$__rate_interval]))`), legend: "calls" }],
    },
    {
      kind: "number",
      title: "What share of calls fails because of us?",
      description:
        "Answers 5xx. 503 means Redis, or no room: runbook intake-refused. Others are bugs: see the log line request_failed.",
      unit: "percentunit",
      queries: [{ expr: shareOf(`${CALLS}_count{status=~"5.."}`, `${CALLS}_count`), legend: "5xx" }],
      alarmFrom: 0.01,
    },
    {
      kind: "number",
      title: "What share of injections is a fallback?",
      description: "The provider failed or was too slow: no ad, no money. See How do calls for an ad end?",
      unit: "percentunit",
      queries: [
        {
          expr: shareOf('adrelay_injections_total{outcome="fallback"}', "adrelay_injections_total"),
          legend: "fallbacks",
        },
      ],
      alarmFrom: 0.05,
    },
    {
      kind: "number",
      title: "How long do 99 % of injections take at most?",
      description:
        "Near INJECTION_TIMEOUT_MS most of the time is the provider's: compare How long does the provider take for an ad?",
      unit: "s",
      queries: [{ expr: quantile(0.99, CALLS, { selector: INJECTIONS }), legend: "99 %" }],
    },
    {
      kind: "number",
      title: "How many gateways run?",
      description: "0: nothing is accepted. Runbook gateway-absent.",
      unit: "short",
      queries: [{ expr: orZero('sum(up{job="adrelay-gateway"})'), legend: "gateways" }],
      alarmBelow: 1,
    },
    {
      kind: "number",
      title: "How many injections have no record?",
      description: "Redis didn't record them in time, so they can't be tracked. Runbook redis-not-durable.",
      unit: "short",
      queries: [
        { expr: orZero("sum(increase(adrelay_injections_untracked_total[$__range]))"), legend: "untracked" },
      ],
      alarmFrom: 1,
    },
    {
      kind: "lines",
      title: "Which operations are called?",
      description:
        "Acknowledgments should follow injections. If only one line falls, a publisher changed something.",
      unit: "reqps",
      queries: [{ expr: ratePerSecond(`${CALLS}_count`, "operation"), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "Which calls get an error?",
      description:
        "401, 403: runbook callers-refused. Other 4xx: inform the publisher. 499: the caller hung up. 503: Redis.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(`${CALLS}_count{status=~"[45].."}`, "operation, status"),
          legend: "{{operation}} {{status}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How long do half of the calls take at most?",
      description: "Acknowledgments wait up to ACK_WAIT_MS for their outcome, on purpose.",
      unit: "s",
      queries: [{ expr: quantile(0.5, CALLS, { by: "le, operation" }), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "How long do 99 % of calls take at most?",
      description: "All operations slow: the process or Redis is busy. Only injections: the provider.",
      unit: "s",
      queries: [{ expr: quantile(0.99, CALLS, { by: "le, operation" }), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "What is the outcome of injections?",
      description:
        "no_fill and rejected are the provider's decisions. fallback and abandoned are lost sales.",
      unit: "reqps",
      queries: [{ expr: ratePerSecond("adrelay_injections_total", "outcome"), legend: "{{outcome}}" }],
    },
    {
      kind: "lines",
      title: "Why do injections fall back?",
      description:
        "timeout: raise the limit, or ask the provider. unauthorized: correct the key. Others: runbook fallbacks-high.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond('adrelay_injections_total{outcome="fallback"}', "reason"),
          legend: "{{reason}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Which publisher's calls are refused?",
      description: "Calls with a known key that got a 4xx. All of a publisher's: runbook publisher-refused.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond('adrelay_publisher_calls_total{status="4xx"}', "publisher"),
          legend: "{{publisher}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How do calls for an ad end?",
      description:
        "Calls to the provider by result. timeout: raise the limit, or ask the provider. Others in words: adrelay doctor.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(`${PROVIDER_CALLS}_count${INJECTIONS}`, "provider, outcome"),
          legend: "{{provider}} {{outcome}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How long does the provider take for an ad?",
      description: "A publisher's user waits for this. Callers limit it with X-Adrelay-Timeout-Ms.",
      unit: "s",
      queries: [
        { expr: quantile(0.5, PROVIDER_CALLS, { selector: INJECTIONS }), legend: "50 %" },
        { expr: quantile(0.99, PROVIDER_CALLS, { selector: INJECTIONS }), legend: "99 %" },
      ],
    },
    {
      kind: "lines",
      title: "Are the processes busy?",
      description: "The delay of the event loop, 99th percentile, worst process. Above 0.1 s: add processes.",
      unit: "s",
      queries: [{ expr: orOneZero("max by (job) (nodejs_eventloop_lag_p99_seconds)"), legend: "{{job}}" }],
      alarmFrom: 0.1,
    },
    {
      kind: "lines",
      title: "How much memory do the processes take?",
      description: "A line that never falls is a leak: restart the processes one by one, and report it.",
      unit: "bytes",
      queries: [{ expr: orOneZero("max by (job) (process_resident_memory_bytes)"), legend: "{{job}}" }],
    },
  ],
};
