/**
 * The ledger's counts as metrics. They come from Redis at each scrape, so they are the same on every replica. Queries take
 * `max by`.
 *
 * 1. A publisher that has its own series has all of them, at zero if nothing was counted: if a series begins above zero,
 *    Prometheus misses that increase.
 * 2. All publishers have their own series if they are few enough. Otherwise those have them whose counts changed within the
 *    last day, or that have unfinished ads, up to the limit. All others share `other`.
 * 3. A counter of `other` begins at zero and sums up what was counted while a publisher was without its own series. So it
 *    never falls when a publisher gets its own.
 */
import { COUNTED_STATES } from "@adrelay/contract";
import { DEAD_REASONS, OTHER_LABEL, OwnSeries } from "@adrelay/core";
import type { QueueDepths } from "../bullmq/queue.ts";
import { STORED_QUOTAS, type StoredLimits } from "../intake/rules.ts";
import { LEDGER_COUNTERS, TOTAL_PLACES } from "./ledger-counters.ts";
import type { PublisherCounts, SharedCounts } from "./snapshot.ts";

interface LedgerSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metric of the ledger. Its samples are made when they are asked for. */
export interface LedgerMetric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  readonly labelNames: readonly string[];
  samples(): Iterable<LedgerSample>;
}

export interface LedgerCounts {
  readonly counts: readonly PublisherCounts[];
  readonly shared: SharedCounts;
  readonly depths: QueueDepths;
}

export interface LedgerMetricsOptions {
  /** The configured publishers. */
  listPublishers(): readonly string[];
  /** How many publishers have their own series. */
  readonly publishersMax: number;
  /** A publisher's quotas of memory. Without it, only their use is shown. */
  readonly limitsOf?: (publisher: string) => StoredLimits;
}

const UNFINISHED = (["awaiting", "queued", "dead"] as const).map((state) => COUNTED_STATES.indexOf(state));

/** The metrics of one process. It remembers the last counts, to see which publishers are active. */
export class LedgerMetrics {
  readonly #options: LedgerMetricsOptions;
  readonly #own: OwnSeries;
  readonly #otherTotals = TOTAL_PLACES.map(() => 0);
  #hasOther = false;
  #last: ReadonlyMap<string, PublisherCounts> | undefined;

  constructor(options: LedgerMetricsOptions) {
    this.#options = options;
    this.#own = new OwnSeries(options.publishersMax);
  }

  /** The counts that were shown last. */
  get last(): ReadonlyMap<string, PublisherCounts> | undefined {
    return this.#last;
  }

  /** The metrics that show these counts. They must be newer than the last ones, and the same objects if nothing changed. */
  show({ counts, shared, depths }: LedgerCounts): LedgerMetric[] {
    const rows = new Map<string, PublisherCounts>(counts.map((row) => [row.publisher, row]));
    const changed = counts.filter((row) => this.#last !== undefined && this.#last.get(row.publisher) !== row);
    this.#countHidden(changed);
    this.#chooseOwn(rows, changed, shared.nowMs);
    this.#last = rows;
    return [
      ...publisherMetrics(this.#makeTable(rows)),
      ...limitMetrics(this.#own.values, this.#options.limitsOf),
      goneMetric(counts, this.#options.listPublishers()),
      ...sharedMetrics({ counts, shared, depths }),
    ];
  }

  #countHidden(changed: readonly PublisherCounts[]): void {
    for (const { publisher, totals } of changed) {
      if (!this.#own.has(publisher)) {
        const before = this.#last?.get(publisher)?.totals ?? [];
        for (const [at, value] of totals.entries()) {
          this.#otherTotals[at] = (this.#otherTotals[at] ?? 0) + Math.max(value - (before[at] ?? 0), 0);
        }
      }
    }
  }

  #chooseOwn(
    rows: ReadonlyMap<string, PublisherCounts>,
    changed: readonly PublisherCounts[],
    nowMs: number,
  ): void {
    this.#own.expire(nowMs);
    const all = new Set([...this.#options.listPublishers(), ...rows.keys()]);
    const areFew = all.size <= this.#options.publishersMax;
    this.#hasOther ||= !areFew || all.has(OTHER_LABEL);
    const unfinished = [...rows.values()].filter(({ states }) => UNFINISHED.some((at) => states[at] !== 0));
    const active = [...changed, ...unfinished].map(({ publisher }) => publisher);
    for (const publisher of areFew ? all : active) {
      this.#own.use(publisher, nowMs);
    }
  }

  #makeTable(rows: ReadonlyMap<string, PublisherCounts>): PublisherTable {
    const own = [...this.#own.values].map((publisher) => ({ publisher, row: rows.get(publisher) }));
    const hidden = [...rows.values()].filter(({ publisher }) => !this.#own.has(publisher));
    const other = { publisher: OTHER_LABEL, row: sumCounts(hidden, [...this.#otherTotals]) };
    return { rows: this.#hasOther ? [...own, other] : own };
  }
}

/** The sums of all counts but the totals, which are those of `other`. */
function sumCounts(rows: readonly PublisherCounts[], totals: readonly number[]): ShownCounts {
  const states = COUNTED_STATES.map(() => 0);
  const deadLetters = DEAD_REASONS.map(() => 0);
  const storedBytes = STORED_QUOTAS.map(() => 0);
  let openTurns = 0;
  for (const row of rows) {
    openTurns += row.openTurns;
    addEach(states, row.states);
    addEach(deadLetters, row.deadLetters);
    addEach(storedBytes, row.storedBytes);
  }
  return { states, openTurns, totals, deadLetters, storedBytes };
}

function addEach(sums: number[], numbers: readonly number[]): void {
  for (const at of sums.keys()) {
    sums[at] = (sums[at] ?? 0) + (numbers[at] ?? 0);
  }
}

type ShownCounts = Pick<PublisherCounts, "states" | "openTurns" | "totals" | "deadLetters" | "storedBytes">;

/** What is shown for each publisher; without a row, all its counts are zero. */
interface PublisherTable {
  readonly rows: readonly {
    readonly publisher: string;
    readonly row: ShownCounts | undefined;
  }[];
}

function* publisherMetrics({ rows }: PublisherTable): Iterable<LedgerMetric> {
  for (const { source, metric, help, label = "", values = [""] } of LEDGER_COUNTERS) {
    const from = TOTAL_PLACES.findIndex((place) => place.source === source);
    yield {
      name: metric,
      help,
      type: "counter",
      ...tableOf(rows, { label, values, numbersOf: (row) => row.totals, from }),
    };
  }
  yield {
    name: "adrelay_acknowledgments",
    help: "Ad responses by state; a final state counts all that ended in it, also entries that have expired.",
    type: "gauge",
    ...tableOf(rows, { label: "state", values: COUNTED_STATES, numbersOf: (row) => row.states, from: 0 }),
  };
  yield {
    name: "adrelay_turns_open",
    help: "Turns of the model proxy that haven't ended.",
    type: "gauge",
    ...tableOf(rows, { label: "", values: [""], numbersOf: (row) => [row.openTurns], from: 0 }),
  };
  yield {
    name: "adrelay_dead_letters",
    help: "Current dead letters, by reason.",
    type: "gauge",
    ...tableOf(rows, { label: "reason", values: DEAD_REASONS, numbersOf: (row) => row.deadLetters, from: 0 }),
  };
  yield {
    name: "adrelay_quota_used_bytes",
    help: "Memory of Redis that counts against a publisher's quota: queued_bytes, dead_bytes, unknown_bytes (queued and dead ones of unknown ids).",
    type: "gauge",
    ...tableOf(rows, { label: "quota", values: STORED_QUOTAS, numbersOf: (row) => row.storedBytes, from: 0 }),
  };
}

/** A quota without a limit has no series. */
function limitMetrics(
  publishers: Iterable<string>,
  limitsOf: LedgerMetricsOptions["limitsOf"],
): LedgerMetric[] {
  if (limitsOf === undefined) {
    return [];
  }
  const samples = [...publishers].flatMap((publisher) => {
    const limits = limitsOf(publisher);
    return STORED_QUOTAS.map((quota) => ({ labels: { publisher, quota }, value: limits[quota] }));
  });
  return [
    {
      name: "adrelay_quota_limit_bytes",
      help: "A publisher's quota of Redis' memory, as this gateway has it. Left out if there is none.",
      type: "gauge",
      labelNames: ["publisher", "quota"],
      samples: () => samples.filter(({ value }) => Number.isFinite(value)),
    },
  ];
}

interface Column {
  /** The labels behind the publisher, with commas between; empty if there is none. */
  readonly label: string;
  readonly values: readonly string[];
  numbersOf(row: ShownCounts): readonly number[];
  /** Where the numbers of the values begin. */
  readonly from: number;
}

function tableOf(
  rows: PublisherTable["rows"],
  { label, values, numbersOf, from }: Column,
): Pick<LedgerMetric, "labelNames" | "samples"> {
  const names = label === "" ? [] : label.split(",");
  const ownLabels = values.map((value) => {
    const parts = value.split(",");
    return Object.fromEntries(names.map((name, at) => [name, parts[at] ?? ""]));
  });
  return {
    labelNames: ["publisher", ...names],
    *samples() {
      for (const { publisher, row } of rows) {
        const numbers = row === undefined ? [] : numbersOf(row);
        for (const [at, own] of ownLabels.entries()) {
          yield { labels: { publisher, ...own }, value: numbers[from + at] ?? 0 };
        }
      }
    },
  };
}

/** A configured publisher has no series. */
function goneMetric(counts: readonly PublisherCounts[], configured: readonly string[]): LedgerMetric {
  const known = new Set(configured);
  const gone = counts.filter(
    ({ publisher, states }) => !known.has(publisher) && UNFINISHED.some((at) => states[at] !== 0),
  );
  return {
    name: "adrelay_gone_publisher_ad_responses",
    help: "Ad responses of publishers that aren't in this process' settings, by state: awaiting, queued, dead.",
    type: "gauge",
    labelNames: ["publisher", "state"],
    samples: () =>
      gone.flatMap(({ publisher, states }) =>
        UNFINISHED.map((at) => ({
          labels: { publisher, state: COUNTED_STATES[at] ?? "" },
          value: states[at] ?? 0,
        })),
      ),
  };
}

function sharedMetrics({ counts, shared, depths }: LedgerCounts): LedgerMetric[] {
  return [
    single(
      "adrelay_oldest_queued_age_seconds",
      "Age of the oldest queued acknowledgment.",
      shared.oldestQueuedAgeMs / 1000,
    ),
    single(
      "adrelay_oldest_dead_letter_age_seconds",
      "Age of the oldest dead letter.",
      shared.oldestDeadAgeMs / 1000,
    ),
    single(
      "adrelay_acknowledgments_overdue",
      "Ad responses past their deadline that the sweep has not reached yet.",
      shared.overdue,
    ),
    {
      name: "adrelay_queue_jobs",
      help: "Jobs on the queue, by state: waiting, active, delayed, failed (payloads of dead letters).",
      type: "gauge",
      labelNames: ["state"],
      samples: () => Object.entries(depths).map(([state, value]) => ({ labels: { state }, value })),
    },
    single(
      "adrelay_books_imbalance",
      "How far injections recorded as ok and unknown acknowledgments differ from the sum of all states, and turns opened from turns ended and open: not zero means a bug.",
      counts.reduce((sum, { imbalance }) => sum + imbalance, 0),
    ),
  ];
}

function single(name: string, help: string, value: number): LedgerMetric {
  return { name, help, type: "gauge", labelNames: [], samples: () => [{ labels: {}, value }] };
}
