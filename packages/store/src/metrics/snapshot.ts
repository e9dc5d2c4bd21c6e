/**
 * Reads all counts of the ledger, a few publishers at a time, so that neither Redis nor this process is held up by many
 * publishers.
 *
 * 1. The counts of one publisher are from one moment, so its books balance. Then the sums over all publishers balance, too.
 * 2. The counts of two publishers may be from different moments.
 */
import { COUNTED_STATES, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { STORED_QUOTAS } from "../intake/rules.ts";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import { PLACE_ARGS, TOTAL_PLACES } from "./ledger-counters.ts";

/** One counter's value, by publisher and by one label. */
export interface LabelledCount {
  readonly publisher: string;
  readonly label: string;
  readonly value: number;
}

/** The counts of one publisher at one moment. */
export interface PublisherCounts {
  readonly publisher: PublisherId;
  /** By state, in the order of COUNTED_STATES. */
  readonly states: readonly number[];
  readonly openTurns: number;
  /** By counter, in the order of TOTAL_PLACES. */
  readonly totals: readonly number[];
  /** Current dead letters by reason, in the order of DEAD_REASONS. */
  readonly deadLetters: readonly number[];
  /** Memory of Redis that it takes, by quota, in the order of STORED_QUOTAS. */
  readonly storedBytes: readonly number[];
  /** What came into the ledger minus what is in it, and the same of the turns (docs/state-machine.md). */
  readonly imbalance: number;
  /** The reply of metrics/publisher-counts.lua. */
  readonly text: string;
}

/** The counts that belong to no publisher. */
export interface SharedCounts {
  /** When, by Redis' clock. */
  readonly nowMs: number;
  readonly oldestQueuedAgeMs: number;
  readonly oldestDeadAgeMs: number;
  /** Awaiting ad responses whose deadline has passed, before the sweep has reached them. */
  readonly overdue: number;
  readonly outboxTasks: number;
}

/** All counts of the ledger. Counts that are zero are left out. */
export interface LedgerSnapshot extends SharedCounts {
  /** Ad responses by state; for an end state all that ever ended in it. `label` is the state. */
  readonly states: readonly LabelledCount[];
  /** Open turns; `label` is empty. */
  readonly openTurns: readonly LabelledCount[];
  /** Counters by name; `label` is the outcome, status or reason, or empty. */
  readonly totals: ReadonlyMap<string, readonly LabelledCount[]>;
  /** Current dead letters; `label` is the reason. */
  readonly deadLetters: readonly LabelledCount[];
  /** Memory of Redis that publishers take; `label` is the quota. */
  readonly storedBytes: readonly LabelledCount[];
}

export interface SnapshotParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
}

/** Fields of one step of the search for publishers. */
const FIELDS_PER_STEP = 500;
const PUBLISHERS_PER_STEP = 25;

/** The counts of every publisher that has any. Counts that are the same as the last ones are the same object. */
export async function loadPublisherCounts(
  parts: SnapshotParts,
  last: ReadonlyMap<string, PublisherCounts> = new Map(),
): Promise<PublisherCounts[]> {
  const publishers = await findPublishers(parts);
  const counts: PublisherCounts[] = [];
  for (let from = 0; from < publishers.length; from += PUBLISHERS_PER_STEP) {
    const some = publishers.slice(from, from + PUBLISHERS_PER_STEP);
    const args = [...PLACE_ARGS, ...some];
    const reply = await parts.run("metrics/publisher-counts", { keys: parts.keys.forEntry(""), args });
    const texts = z.array(z.string()).parse(reply);
    for (const [at, publisher] of some.entries()) {
      const [text = "", known] = [texts[at], last.get(publisher)];
      counts.push(known?.text === text ? known : parseCounts(publisher, text));
    }
  }
  return counts;
}

/** A publisher's first count is a counter: of its first recorded injection, or of its first accepted acknowledgment. */
async function findPublishers({ redis, keys }: SnapshotParts): Promise<PublisherId[]> {
  const found = new Set<string>();
  let cursor = "0";
  do {
    const [next, fields] = await redis.hscan(keys.totals, cursor, "COUNT", FIELDS_PER_STEP);
    for (let at = 0; at < fields.length; at += 2) {
      const publisher = fields[at]?.split("|", 2)[1];
      if (publisher !== undefined) {
        found.add(publisher);
      }
    }
    cursor = next;
  } while (cursor !== "0");
  return [...found].map((publisher) => publisherIdSchema.parse(publisher));
}

function parseCounts(publisher: PublisherId, text: string): PublisherCounts {
  const counts = text.split(",").map(Number);
  const totalsFrom = COUNTED_STATES.length + 1;
  const deadFrom = totalsFrom + TOTAL_PLACES.length;
  const storedFrom = deadFrom + DEAD_REASONS.length;
  const row = {
    publisher,
    states: counts.slice(0, COUNTED_STATES.length),
    openTurns: counts[COUNTED_STATES.length] ?? 0,
    totals: counts.slice(totalsFrom, deadFrom),
    deadLetters: counts.slice(deadFrom, storedFrom),
    storedBytes: counts.slice(storedFrom),
    text,
  };
  return { ...row, imbalance: imbalanceOf(row) };
}

function imbalanceOf({
  states,
  openTurns,
  totals,
}: Pick<PublisherCounts, "states" | "openTurns" | "totals">): number {
  const sumOf = (places: readonly number[]) => sum(places.map((at) => totals[at] ?? 0));
  const entries = sumOf(CAME_IN_PLACES) - sumOf(LEFT_PLACES) - sum(states);
  const turns = sumOf(OPENED_PLACES) - sumOf(ENDED_PLACES) - openTurns;
  return Math.abs(entries) + Math.abs(turns);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** The counters of what came into the ledger and is in one of COUNTED_STATES. */
const CAME_IN_PLACES = TOTAL_PLACES.flatMap(({ source, label }, at) =>
  source === "unknown" || source === "adopted" || (source === "recorded" && label === "ok") ? [at] : [],
);
/** The counters of what left a publisher for another one, or ended in a state that isn't counted. */
const LEFT_PLACES = placesOf("given", "abandoned");
const OPENED_PLACES = placesOf("turns_opened");
const ENDED_PLACES = placesOf("turns");

function placesOf(...sources: readonly string[]): number[] {
  return TOTAL_PLACES.flatMap(({ source }, at) => (sources.includes(source) ? [at] : []));
}

const rowSchema = z.array(z.unknown());
const sharedSchema = z.tuple([z.number(), rowSchema, rowSchema, z.number(), z.number()]);

/** The counts that belong to no publisher, at one moment. */
export async function loadSharedCounts({ run, keys }: SnapshotParts): Promise<SharedCounts> {
  const reply = await run("metrics/snapshot", { keys: keys.forEntry(""), args: [] });
  const [nowMs, queued, dead, overdue, outboxTasks] = sharedSchema.parse(reply);
  const ageMs = (oldest: unknown[]) => (oldest.length < 2 ? 0 : Math.max(nowMs - Number(oldest[1]), 0));
  return { nowMs, oldestQueuedAgeMs: ageMs(queued), oldestDeadAgeMs: ageMs(dead), overdue, outboxTasks };
}

/** All counts of the ledger. */
export async function loadSnapshot(parts: SnapshotParts): Promise<LedgerSnapshot> {
  const [counts, shared] = await Promise.all([loadPublisherCounts(parts), loadSharedCounts(parts)]);
  const totals = Map.groupBy(
    counts
      .flatMap(({ publisher, totals: values }) =>
        TOTAL_PLACES.map((place, at) => ({ ...place, publisher, value: values[at] ?? 0 })),
      )
      .filter(isSome),
    ({ source }) => source,
  );
  return {
    ...shared,
    states: counts.flatMap(({ publisher, states }) => labelled(publisher, COUNTED_STATES, states)),
    openTurns: counts.flatMap(({ publisher, openTurns }) => labelled(publisher, [""], [openTurns])),
    totals: new Map([...totals].map(([source, values]) => [source, values.map(withoutSource)])),
    deadLetters: counts.flatMap(({ publisher, deadLetters }) =>
      labelled(publisher, DEAD_REASONS, deadLetters),
    ),
    storedBytes: counts.flatMap(({ publisher, storedBytes }) =>
      labelled(publisher, STORED_QUOTAS, storedBytes),
    ),
  };
}

const isSome = ({ value }: Pick<LabelledCount, "value">) => value !== 0;

function withoutSource({ publisher, label, value }: LabelledCount): LabelledCount {
  return { publisher, label, value };
}

function labelled(publisher: string, labels: readonly string[], values: readonly number[]): LabelledCount[] {
  return labels.map((label, at) => ({ publisher, label, value: values[at] ?? 0 })).filter(isSome);
}
