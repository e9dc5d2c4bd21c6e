/**
 * The ledger's counts as metrics. They come from Redis at each scrape, in one step, so they are the same on every replica
 * and balance at every scrape. Queries take `max by`.
 *
 * Each known publisher has all series, at zero from the start: if a series begins above zero, Prometheus misses that
 * increase. The known publishers are those that are configured, and those that have counts.
 */
import { COUNTED_STATES, type PublisherId, VERDICTS } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { Counter, Gauge, Registry } from "prom-client";
import type { QueueDepths } from "../bullmq/queue.ts";
import { RECORDED_OUTCOMES } from "../intake/injections.ts";
import { gonePublishers } from "../publishers/adoption.ts";
import type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";

/** A counter of the ledger as a metric. Its first label is always the publisher. */
interface LedgerCounter {
  /** Name of the counter in Redis. */
  readonly source: string;
  readonly metric: string;
  readonly help: string;
  /** The second label, and all values that it can have. */
  readonly label?: "outcome" | "status" | "reason";
  readonly values?: readonly string[];
}

/** All counters of the ledger. */
const LEDGER_COUNTERS: readonly LedgerCounter[] = [
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
];

export interface LedgerCounts {
  readonly snapshot: LedgerSnapshot;
  readonly depths: QueueDepths;
  /** The configured ones. */
  readonly publishers: readonly PublisherId[];
}

/** The counts in a separate registry. */
export function renderLedgerMetrics({ snapshot, depths, publishers }: LedgerCounts): Registry {
  const registry = new Registry();
  for (const counter of LEDGER_COUNTERS) {
    const counts = snapshot.totals.get(counter.source) ?? [];
    addCounter(registry, counter, { publishers, counts });
  }
  addStates(registry, snapshot, publishers);
  addDeadLetters(registry, snapshot, publishers);
  addGonePublishers(registry, snapshot, publishers);
  addSingleValues(registry, snapshot);
  const jobs = new Gauge({
    name: "adrelay_queue_jobs",
    help: "Jobs on the queue, by state: waiting, active, delayed, failed (payloads of dead letters).",
    labelNames: ["state"],
    registers: [registry],
  });
  for (const [state, value] of Object.entries(depths)) {
    jobs.set({ state }, value);
  }
  return registry;
}

interface PublishersCounts {
  readonly publishers: readonly string[];
  readonly counts: readonly LabelledCount[];
}

function addCounter(
  registry: Registry,
  { metric, help, label, values }: LedgerCounter,
  { publishers, counts }: PublishersCounts,
): void {
  const labelNames = label === undefined ? ["publisher"] : ["publisher", label];
  const counter = new Counter({ name: metric, help, labelNames, registers: [registry] });
  const add = ({ publisher, label: value, value: total }: LabelledCount) =>
    counter.inc(label === undefined ? { publisher } : { publisher, [label]: value }, total);
  zeros(publishers, values ?? [""]).forEach(add);
  counts.forEach(add);
}

/** A zero for each publisher with each label. */
function zeros(publishers: readonly string[], labels: readonly string[]): LabelledCount[] {
  return publishers.flatMap((publisher) => labels.map((label) => ({ publisher, label, value: 0 })));
}

function addStates(registry: Registry, { states }: LedgerSnapshot, publishers: readonly string[]): void {
  const gauge = new Gauge({
    name: "adrelay_acknowledgments",
    help: "Ad responses by state; a final state counts all that ended in it, also entries that have expired.",
    labelNames: ["publisher", "state"],
    registers: [registry],
  });
  for (const { publisher, label: state, value } of [...zeros(publishers, COUNTED_STATES), ...states]) {
    gauge.set({ publisher, state }, value);
  }
}

function addDeadLetters(
  registry: Registry,
  { deadLetters }: LedgerSnapshot,
  publishers: readonly string[],
): void {
  const gauge = new Gauge({
    name: "adrelay_dead_letters",
    help: "Current dead letters, by reason.",
    labelNames: ["publisher", "reason"],
    registers: [registry],
  });
  for (const { publisher, label: reason, value } of [...zeros(publishers, DEAD_REASONS), ...deadLetters]) {
    gauge.set({ publisher, reason }, value);
  }
}

/** It has no series for a configured publisher, because settings change only with a restart. */
function addGonePublishers(
  registry: Registry,
  snapshot: LedgerSnapshot,
  publishers: readonly PublisherId[],
): void {
  const gauge = new Gauge({
    name: "adrelay_gone_publisher_ad_responses",
    help: "Ad responses of publishers that aren't in this process' settings, by state: awaiting, queued, dead.",
    labelNames: ["publisher", "state"],
    registers: [registry],
  });
  for (const { publisher, counts } of gonePublishers(snapshot, publishers)) {
    for (const [state, value] of Object.entries(counts)) {
      gauge.set({ publisher, state }, value);
    }
  }
}

function addSingleValues(registry: Registry, snapshot: LedgerSnapshot): void {
  const gauges = {
    adrelay_oldest_queued_age_seconds: [
      "Age of the oldest queued acknowledgment.",
      snapshot.oldestQueuedAgeMs / 1000,
    ],
    adrelay_oldest_dead_letter_age_seconds: [
      "Age of the oldest dead letter.",
      snapshot.oldestDeadAgeMs / 1000,
    ],
    adrelay_acknowledgments_overdue: [
      "Ad responses past their deadline that the sweep has not reached yet.",
      snapshot.overdue,
    ],
    adrelay_books_imbalance: [
      "Injections recorded as ok plus unknown acknowledgments, minus the sum of all states: not zero means a bug.",
      imbalanceOf(snapshot),
    ],
  } as const;
  for (const [name, [help, value]] of Object.entries(gauges)) {
    new Gauge({ name, help, registers: [registry] }).set(value);
  }
}

/** What came into the ledger minus what is in it (docs/state-machine.md). */
function imbalanceOf({ states, totals }: LedgerSnapshot): number {
  const sum = (counts: readonly LabelledCount[]) => counts.reduce((total, { value }) => total + value, 0);
  const filled = (totals.get("recorded") ?? []).filter(({ label }) => label === "ok");
  return sum(filled) + sum(totals.get("unknown") ?? []) - sum(states);
}
