/**
 * The numbers of a report. An injection counts for the day on which it was answered, whenever it ends.
 *
 * - requests = injected + rejected + no_fill
 * - injected = ok + no_ad_used + expired + pending
 * - unpaid: the part of ok for which no budget was left
 * - disclosed: the part of ok whose answer marks the ad as one
 * - foreign_links: the part of ok whose answer links the ad to another domain than the landing page's
 * - spent_micros: charged for ok; reserved_micros: held for pending
 */
export const COUNTERS = [
  "requests",
  "injected",
  "rejected",
  "no_fill",
  "ok",
  "no_ad_used",
  "expired",
  "pending",
  "unpaid",
  "disclosed",
  "spent_micros",
  "reserved_micros",
  "foreign_links",
] as const;
type CounterName = (typeof COUNTERS)[number];
type Counters = Readonly<Record<CounterName, number>>;

export const GROUPINGS = ["ad", "advertiser", "publisher", "day"] as const;
export type Grouping = (typeof GROUPINGS)[number];

/** One counted number. `ad` is null if it belongs to no ad, such as a rejection. */
export interface ReportEntry {
  /** As YYYY-MM-DD, in UTC. */
  readonly day: string;
  readonly publisher: string;
  readonly ad: string | null;
  readonly counter: CounterName;
  readonly value: number;
}

export interface ReportRow extends Counters {
  /** The day, publisher, ad or advertiser of the row; null for numbers that belong to no ad. */
  readonly key: string | null;
}

export interface SpendReport {
  /** Sorted by key; null comes first. */
  readonly rows: readonly ReportRow[];
  readonly totals: Counters;
}

/** Sums the entries of each group. `advertisers` maps each ad to its advertiser. */
export function makeSpendReport(
  entries: readonly ReportEntry[],
  groupBy: Grouping,
  advertisers: ReadonlyMap<string, string> = new Map(),
): SpendReport {
  const groups = Map.groupBy(entries, (entry) => keyOf(entry, groupBy, advertisers));
  const rows = [...groups].map(([key, group]) => ({ key, ...sum(group) }));
  return { rows: rows.sort((one, other) => compareKeys(one.key, other.key)), totals: sum(entries) };
}

function keyOf(
  entry: ReportEntry,
  groupBy: Grouping,
  advertisers: ReadonlyMap<string, string>,
): string | null {
  if (groupBy !== "advertiser") {
    return entry[groupBy];
  }
  return advertisers.get(entry.ad ?? "") ?? null;
}

function sum(entries: readonly ReportEntry[]): Counters {
  const sums = { ...ZEROS };
  for (const { counter, value } of entries) {
    sums[counter] += value;
  }
  return sums;
}

const ZEROS = {
  requests: 0,
  injected: 0,
  rejected: 0,
  no_fill: 0,
  ok: 0,
  no_ad_used: 0,
  expired: 0,
  pending: 0,
  unpaid: 0,
  disclosed: 0,
  spent_micros: 0,
  reserved_micros: 0,
  foreign_links: 0,
} as const satisfies Counters;

/** Compares by code units, so the order is the same on every machine. */
function compareKeys(one: string | null, other: string | null): number {
  if (one === other) {
    return 0;
  }
  return one === null || (other !== null && one < other) ? -1 : 1;
}
