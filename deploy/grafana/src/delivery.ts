import type { DashboardSpec } from "./dashboard-spec.ts";
import { ledgerOrOneZero, ledgerPerMinute, orOneZero, orZero, quantile, ratePerSecond } from "./promql.ts";

const ATTEMPTS = "adrelay_delivery_attempts_total";
const PROVIDER_CALLS = "adrelay_provider_request_duration_seconds";
const ACKNOWLEDGE = '{operation="acknowledge"}';

/** From the queue to the provider. */
export const DELIVERY: DashboardSpec = {
  name: "delivery",
  title: "Adrelay: Delivery",
  description:
    "From the queue to the provider: attempts, circuit breakers, waiting acknowledgments and their age.",
  hasPublisherChoice: false,
  panels: [
    {
      kind: "number",
      title: "How old is the oldest queued acknowledgment?",
      description:
        "Above half an hour: runbook oldest-queued-too-old. After DELIVERY_MAX_AGE it becomes a dead letter.",
      unit: "s",
      queries: [{ expr: "max(adrelay_oldest_queued_age_seconds)", legend: "oldest" }],
      alarmFrom: 1800,
    },
    {
      kind: "number",
      title: "How many acknowledgments wait for their provider?",
      description:
        "Its circuit breaker is open. They go out automatically once it is back. Runbook circuit-open.",
      unit: "short",
      queries: [
        {
          expr: orZero("sum(max by (environment, provider) (adrelay_provider_waiting_acknowledgments))"),
          legend: "waiting",
        },
      ],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many provider accounts refuse our key?",
      description:
        "A worker with a refused key delivers nothing until the key is corrected. Runbook provider-refuses-key.",
      unit: "short",
      queries: [
        {
          expr: orZero('sum(max by (environment, provider) (adrelay_provider_circuit_open{reason="auth"}))'),
          legend: "refusing",
        },
      ],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many workers run?",
      description: "0: nothing is delivered and no deadline is swept. Runbook worker-absent.",
      unit: "short",
      queries: [{ expr: orZero('sum(up{job="adrelay-worker"})'), legend: "workers" }],
      alarmBelow: 1,
    },
    {
      kind: "number",
      title: "Is Redis reachable and durable for all?",
      description:
        "1: yes, for every process. 0: some processes accept no acknowledgments. Runbook redis-not-durable.",
      unit: "short",
      queries: [{ expr: "min(adrelay_redis_durable)", legend: "durable" }],
      alarmBelow: 1,
    },
    {
      kind: "number",
      title: "How often did Redis lose data?",
      description: "Above 0: runbook redis-data-lost.",
      unit: "short",
      queries: [
        { expr: orZero("max(increase(adrelay_redis_data_losses_total[$__range]))"), legend: "losses" },
      ],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How long until the oldest dead letter expires?",
      description:
        "Then it can't be replayed any more. Runbooks dead-letters-standing, dead-letters-expiring.",
      unit: "s",
      queries: [
        {
          expr: "min(adrelay_dead_letter_retention_seconds) - max(adrelay_oldest_dead_letter_age_seconds)",
          legend: "left",
        },
      ],
      alarmBelow: 86_400,
    },
    {
      kind: "lines",
      title: "How do attempts end?",
      description:
        "If `retry` grows while `deliver` doesn't, there is an outage. `die`: see Why do acknowledgments die?",
      unit: "reqps",
      queries: [{ expr: ratePerSecond(ATTEMPTS, "outcome"), legend: "{{outcome}}" }],
    },
    {
      kind: "lines",
      title: "Which circuit breakers are open, and why?",
      description:
        "outage, throttled: wait. auth: correct the key. An account has the name of one of its publishers.",
      unit: "short",
      queries: [
        {
          expr: orOneZero("max by (environment, provider, reason) (adrelay_provider_circuit_open)"),
          legend: "{{provider}} {{reason}}",
        },
      ],
      alarmFrom: 1,
    },
    {
      kind: "lines",
      title: "How many acknowledgments wait for each provider?",
      description:
        "Grows during an outage. Falls after it, at RECOVERY_RATE_PER_SECOND, which doubles each minute.",
      unit: "short",
      queries: [
        {
          expr: orOneZero("max by (environment, provider) (adrelay_provider_waiting_acknowledgments)"),
          legend: "{{provider}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How many attempts at a time does each provider get?",
      description:
        "All workers together. Falls while the provider fails under load, and grows again with each success.",
      unit: "short",
      queries: [
        { expr: orOneZero("sum by (provider) (adrelay_delivery_concurrency_limit)"), legend: "{{provider}}" },
      ],
    },
    {
      kind: "lines",
      title: "What share of attempts has to be repeated?",
      description:
        "A small share is normal. Nearly all: an outage. A steady share: the provider answers some with errors; ask it.",
      unit: "percentunit",
      queries: [
        {
          expr: `(${orZero(`sum(rate(${ATTEMPTS}{outcome="retry"}[$__rate_interval]))`)}) / clamp_min(${orZero(`sum(rate(${ATTEMPTS}[$__rate_interval]))`)}, 0.001)`,
          legend: "retried",
        },
      ],
    },
    {
      kind: "lines",
      title: "How full is the queue?",
      description:
        "delayed: jobs that wait for their next attempt. If waiting grows, the workers don't keep up: add some.",
      unit: "short",
      queries: [
        {
          expr: ledgerOrOneZero("sum by (state) (max by (environment, state) (adrelay_queue_jobs))"),
          legend: "{{state}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How old are the oldest acknowledgments?",
      description:
        "A line that rises steadily is one acknowledgment that isn't delivered: `adrelay status`, then `adrelay lookup`.",
      unit: "s",
      queries: [
        { expr: "max(adrelay_oldest_queued_age_seconds)", legend: "queued" },
        { expr: "max(adrelay_oldest_dead_letter_age_seconds)", legend: "dead letter" },
      ],
    },
    {
      kind: "lines",
      title: "What does the provider answer to acknowledgments?",
      description:
        "4xx: it finds a fault in them; see the dead letters' reasons. 5xx, timeout: it is in trouble. Others in words: adrelay doctor.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond(`${PROVIDER_CALLS}_count${ACKNOWLEDGE}`, "provider, outcome"),
          legend: "{{provider}} {{outcome}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How long does the provider take to answer?",
      description:
        "Near DELIVERY_TIMEOUT_MS attempts fail. If it is slow but works, raise WORKER_CONCURRENCY.",
      unit: "s",
      queries: [
        { expr: quantile(0.5, PROVIDER_CALLS, { selector: ACKNOWLEDGE }), legend: "50 %" },
        { expr: quantile(0.99, PROVIDER_CALLS, { selector: ACKNOWLEDGE }), legend: "99 %" },
      ],
    },
    {
      kind: "lines",
      title: "What happens to dead letters?",
      description:
        "Died but not replayed: nobody has acted yet. expired: finally lost after DEAD_LETTER_RETENTION. discarded also counts queued acknowledgments.",
      unit: "cpm",
      queries: [
        { expr: ledgerPerMinute("adrelay_acknowledgments_dead_total"), legend: "died" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_replayed_total"), legend: "replayed" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_discarded_total"), legend: "discarded" },
        { expr: ledgerPerMinute("adrelay_acknowledgments_expired_total"), legend: "expired" },
      ],
    },
  ],
};
