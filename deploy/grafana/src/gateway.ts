import type { DashboardSpec } from "./dashboard-spec.ts";
import { orOneZero, orZero, quantile, ratePerSecond } from "./promql.ts";

const CALLS = "adrelay_http_request_duration_seconds";
const PROVIDER_CALLS = "adrelay_provider_request_duration_seconds";
const INJECTIONS = '{operation="start_injection"}';

function shareOf(part: string, whole: string): string {
  const rateOf = (series: string) => orZero(`sum(rate(${series}[$__rate_interval]))`);
  return `(${rateOf(part)}) / clamp_min(${rateOf(whole)}, 0.001)`;
}

/** What publishers see of the relay. */
export const GATEWAY: DashboardSpec = {
  name: "gateway",
  title: "Adrelay: Gateway",
  description:
    "What publishers see: how many calls, how they are answered, how fast, and how often without an ad.",
  hasPublisherChoice: false,
  panels: [
    {
      kind: "number",
      title: "How many calls come in?",
      description: "0: nobody calls, or nothing reaches us. Look at what stands before the gateway.",
      unit: "reqps",
      queries: [{ expr: orZero(`sum(rate(${CALLS}_count[$__rate_interval]))`), legend: "calls" }],
    },
    {
      kind: "number",
      title: "Which share of calls fails by our fault?",
      description:
        "5xx. 503 is Redis: runbook redis-not-durable. Others are bugs: the log line request_failed.",
      unit: "percentunit",
      queries: [{ expr: shareOf(`${CALLS}_count{status=~"5.."}`, `${CALLS}_count`), legend: "5xx" }],
      alarmFrom: 0.01,
    },
    {
      kind: "number",
      title: "Which share of injections is a fallback?",
      description:
        "The provider failed or was too slow: no ad, no money. See Why do injections come to nothing?",
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
        "Near INJECTION_TIMEOUT_MS most of it is the provider: compare How long does the provider take for an ad?",
      unit: "s",
      queries: [{ expr: quantile(0.99, CALLS, { selector: INJECTIONS }), legend: "99 %" }],
    },
    {
      kind: "number",
      title: "How many gateways run?",
      description: "0: nothing is taken. Runbook gateway-absent.",
      unit: "short",
      queries: [{ expr: orZero('sum(up{job="adrelay-gateway"})'), legend: "gateways" }],
      alarmBelow: 1,
    },
    {
      kind: "number",
      title: "How many injections have no record?",
      description: "Redis didn't take them in time: they can't be followed. Runbook redis-not-durable.",
      unit: "short",
      queries: [
        { expr: orZero("sum(increase(adrelay_injections_untracked_total[$__range]))"), legend: "untracked" },
      ],
      alarmFrom: 1,
    },
    {
      kind: "lines",
      title: "What is the gateway called for?",
      description:
        "Acknowledgments should follow injections. If one line falls alone, a publisher changed something.",
      unit: "reqps",
      queries: [{ expr: ratePerSecond(`${CALLS}_count`, "operation"), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "Which calls are not answered as wished?",
      description: "401, 403: runbook callers-refused. 4xx: tell the publisher. 499: it hung up. 503: Redis.",
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
      title: "How long does half of the calls take?",
      description: "Acknowledgments wait up to ACK_WAIT_MS for their outcome on purpose.",
      unit: "s",
      queries: [{ expr: quantile(0.5, CALLS, { by: "le, operation" }), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "How long does the slowest hundredth take?",
      description: "All operations at once: this process or Redis is busy. Injections alone: the provider.",
      unit: "s",
      queries: [{ expr: quantile(0.99, CALLS, { by: "le, operation" }), legend: "{{operation}}" }],
    },
    {
      kind: "lines",
      title: "What comes of injections?",
      description:
        "no_fill and rejected are the provider's decisions. fallback and abandoned are lost sales.",
      unit: "reqps",
      queries: [{ expr: ratePerSecond("adrelay_injections_total", "outcome"), legend: "{{outcome}}" }],
    },
    {
      kind: "lines",
      title: "Why do injections come to nothing?",
      description:
        "Calls to the provider by how they end. timeout: raise the limit or ask it. unreachable: the network.",
      unit: "reqps",
      queries: [
        { expr: ratePerSecond(`${PROVIDER_CALLS}_count${INJECTIONS}`, "outcome"), legend: "{{outcome}}" },
      ],
    },
    {
      kind: "lines",
      title: "How long does the provider take for an ad?",
      description: "A publisher's user waits for this. Callers bound it with X-Adrelay-Timeout-Ms.",
      unit: "s",
      queries: [
        { expr: quantile(0.5, PROVIDER_CALLS, { selector: INJECTIONS }), legend: "half" },
        { expr: quantile(0.99, PROVIDER_CALLS, { selector: INJECTIONS }), legend: "99 %" },
      ],
    },
    {
      kind: "lines",
      title: "Are the processes busy?",
      description:
        "How late the event loop is, at worst. Above 0.1 s: more processes, or fewer calls to each.",
      unit: "s",
      queries: [{ expr: orOneZero("max by (job) (nodejs_eventloop_lag_p99_seconds)"), legend: "{{job}}" }],
      alarmFrom: 0.1,
    },
    {
      kind: "lines",
      title: "How much memory do the processes take?",
      description: "A line that only grows is a leak: restart in turn, and report it.",
      unit: "bytes",
      queries: [{ expr: orOneZero("max by (job) (process_resident_memory_bytes)"), legend: "{{job}}" }],
    },
  ],
};
