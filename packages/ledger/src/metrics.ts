import { COUNTED_STATES, type PublisherId } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { Counter, Gauge, Registry } from "prom-client";
import type { Ledger } from "./ledger.ts";
import { LEDGER_COUNTERS, type LedgerCounter } from "./ledger-counters.ts";
import type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";

/**
 * The ledger's counts as metrics: the same on every replica, since they come from Redis at each scrape and
 * in one step, so that the books balance at every scrape. Queries take `max by`.
 *
 * Every known publisher has every series from the start, at zero: an increase from nothing is no increase to
 * Prometheus. Publishers are those that are configured, and those that ever were: the books name no others.
 */

/** Queue depths beside the books; the queue is another package's. */
export type QueueDepths = Readonly<Record<string, number>>;

export interface LedgerSources {
  readonly ledger: Pick<Ledger, "snapshot">;
  /** The configured ones. */
  readonly publishers: readonly PublisherId[];
  queueDepths(): Promise<QueueDepths>;
}

/** A process' own metrics with those of the ledger; without the latter while Redis can't be asked. */
export async function collectWithLedger(own: Registry, sources: LedgerSources): Promise<Registry> {
  const ofLedger = await collectLedgerMetrics(sources).catch(() => undefined);
  return ofLedger === undefined ? own : Registry.merge([own, ofLedger]);
}

/** Reads the ledger and puts its counts into a registry of their own. */
async function collectLedgerMetrics(sources: LedgerSources): Promise<Registry> {
  const { ledger, publishers, queueDepths } = sources;
  const [snapshot, depths] = await Promise.all([ledger.snapshot(), queueDepths()]);
  const registry = new Registry();
  for (const counter of LEDGER_COUNTERS) {
    addCounter(registry, counter, {
      publishers,
      counts: snapshot.totals.get(counter.source) ?? [],
    });
  }
  addStates(registry, snapshot, publishers);
  addDeadLetters(registry, snapshot, publishers);
  addSingleValues(registry, snapshot);
  const jobs = new Gauge({
    name: "adrelay_queue_jobs",
    help: "Jobs on the queue, by state: waiting, active, delayed, failed (dead letters' payloads).",
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

/** A count of nothing for each publisher with each label. */
function zeros(publishers: readonly string[], labels: readonly string[]): LabelledCount[] {
  return publishers.flatMap((publisher) => labels.map((label) => ({ publisher, label, value: 0 })));
}

function addStates(registry: Registry, { states }: LedgerSnapshot, publishers: readonly string[]): void {
  const gauge = new Gauge({
    name: "adrelay_acknowledgments",
    help: "Ad responses by state; an end state counts all that ended there, also records since forgotten.",
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
    help: "Dead letters that stand now, by reason.",
    labelNames: ["publisher", "reason"],
    registers: [registry],
  });
  for (const { publisher, label: reason, value } of [...zeros(publishers, DEAD_REASONS), ...deadLetters]) {
    gauge.set({ publisher, reason }, value);
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
    adrelay_acknowledgments_overdue: ["Past their deadline and not yet swept.", snapshot.overdue],
    adrelay_books_imbalance: [
      "Injections recorded as ok and unknown acknowledgments, less the sum of all states: zero, or a bug.",
      imbalanceOf(snapshot),
    ],
  } as const;
  for (const [name, [help, value]] of Object.entries(gauges)) {
    new Gauge({ name, help, registers: [registry] }).set(value);
  }
}

/** What came into the books less what is in them (docs/state-machine.md). */
function imbalanceOf({ states, totals }: LedgerSnapshot): number {
  const sum = (counts: readonly LabelledCount[]) => counts.reduce((total, { value }) => total + value, 0);
  const filled = (totals.get("recorded") ?? []).filter(({ label }) => label === "ok");
  return sum(filled) + sum(totals.get("unknown") ?? []) - sum(states);
}
