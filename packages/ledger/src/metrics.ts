import { Counter, Gauge, Registry } from "prom-client";
import type { Ledger } from "./ledger.ts";
import type { LabelledCount, LedgerSnapshot } from "./snapshot.ts";

/**
 * The ledger's counts as metrics: the same on every replica, since they come from Redis at each scrape and
 * in one step, so that the books balance at every scrape. Queries take `max by`.
 */
interface LedgerCounter {
  /** Name of the counter in the ledger. */
  readonly source: string;
  readonly metric: string;
  readonly help: string;
  /** Second label: its values are the outcomes, verdicts or reasons that the ledger books. */
  readonly label?: "outcome" | "status" | "reason";
}

export const LEDGER_COUNTERS: readonly LedgerCounter[] = [
  {
    source: "recorded",
    metric: "adrelay_injections_recorded_total",
    help: "Injections on the books, by outcome: ok, rejected, no_fill, fallback, abandoned.",
    label: "outcome",
  },
  { source: "accepted", metric: "adrelay_acknowledgments_accepted_total", help: "Acknowledgments taken." },
  {
    source: "unknown",
    metric: "adrelay_acknowledgments_unknown_total",
    help: "Acknowledgments taken without a known injection.",
  },
  {
    source: "delivered",
    metric: "adrelay_acknowledgments_delivered_total",
    help: "Acknowledgments that the provider has, by verdict: ok, no_ad_used, unknown (a 409 that told none).",
    label: "status",
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
  },
  {
    source: "missed",
    metric: "adrelay_acknowledgments_missed_total",
    help: "Deadlines that passed unacknowledged.",
  },
  {
    source: "late",
    metric: "adrelay_acknowledgments_late_total",
    help: "Acknowledgments taken after their deadline.",
  },
  {
    source: "replayed",
    metric: "adrelay_acknowledgments_replayed_total",
    help: "Dead letters put back on the queue.",
  },
  { source: "discarded", metric: "adrelay_acknowledgments_discarded_total", help: "Dead letters discarded." },
  {
    source: "expired",
    metric: "adrelay_acknowledgments_expired_total",
    help: "Dead letters past their retention.",
  },
];

/** Queue depths beside the books; the queue is another package's. */
export type QueueDepths = Readonly<Record<string, number>>;

export interface LedgerSources {
  readonly ledger: Ledger;
  queueDepths(): Promise<QueueDepths>;
}

/** A process' own metrics with those of the ledger; without the latter while Redis can't be asked. */
export async function collectWithLedger(own: Registry, sources: LedgerSources): Promise<Registry> {
  const ofLedger = await collectLedgerMetrics(sources).catch(() => undefined);
  return ofLedger === undefined ? own : Registry.merge([own, ofLedger]);
}

/** Reads the ledger and puts its counts into a registry of their own. */
async function collectLedgerMetrics({ ledger, queueDepths }: LedgerSources): Promise<Registry> {
  const [snapshot, depths] = await Promise.all([ledger.snapshot(), queueDepths()]);
  const registry = new Registry();
  for (const counter of LEDGER_COUNTERS) {
    addCounter(registry, counter, snapshot.totals.get(counter.source) ?? []);
  }
  addStates(registry, snapshot);
  addDeadLetters(registry, snapshot);
  addAges(registry, snapshot);
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

function addCounter(
  registry: Registry,
  { metric, help, label }: LedgerCounter,
  counts: readonly LabelledCount[],
): void {
  const labelNames = label === undefined ? ["publisher"] : ["publisher", label];
  const counter = new Counter({ name: metric, help, labelNames, registers: [registry] });
  for (const { publisher, label: value, value: total } of counts) {
    counter.inc(label === undefined ? { publisher } : { publisher, [label]: value }, total);
  }
}

function addStates(registry: Registry, { states }: LedgerSnapshot): void {
  const gauge = new Gauge({
    name: "adrelay_acknowledgments",
    help: "Ad responses by state; an end state counts all that ended there, also records since forgotten.",
    labelNames: ["publisher", "state"],
    registers: [registry],
  });
  for (const { publisher, label: state, value } of states) {
    gauge.set({ publisher, state }, value);
  }
}

function addDeadLetters(registry: Registry, { deadLetters }: LedgerSnapshot): void {
  const gauge = new Gauge({
    name: "adrelay_dead_letters",
    help: "Dead letters that stand now, by reason.",
    labelNames: ["publisher", "reason"],
    registers: [registry],
  });
  for (const { publisher, label: reason, value } of deadLetters) {
    gauge.set({ publisher, reason }, value);
  }
}

function addAges(registry: Registry, snapshot: LedgerSnapshot): void {
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
  } as const;
  for (const [name, [help, value]] of Object.entries(gauges)) {
    new Gauge({ name, help, registers: [registry] }).set(value);
  }
}
