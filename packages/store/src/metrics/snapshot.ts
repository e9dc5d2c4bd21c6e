import { publisherIdSchema } from "@adrelay/contract";
import { z } from "zod";
import { fieldsOf } from "../redis/scripts.ts";

/** One counter's value, by publisher and by one label. */
export interface LabelledCount {
  readonly publisher: string;
  readonly label: string;
  readonly value: number;
}

/** All counts of the ledger at one moment. */
export interface LedgerSnapshot {
  /** When, by Redis' clock. */
  readonly nowMs: number;
  /** Ad responses by state; for an end state all that ever ended in it. `label` is the state. */
  readonly states: readonly LabelledCount[];
  /** Counters by name; `label` is the outcome, status or reason, or empty. */
  readonly totals: ReadonlyMap<string, readonly LabelledCount[]>;
  readonly oldestQueuedAgeMs: number;
  readonly oldestDeadAgeMs: number;
  /** Awaiting ad responses whose deadline has passed, before the sweep has reached them. */
  readonly overdue: number;
  readonly outboxTasks: number;
  /** Current dead letters; `label` is the reason. */
  readonly deadLetters: readonly LabelledCount[];
}

const rowSchema = z.array(z.unknown());
const replySchema = z.tuple([
  z.coerce.number(),
  rowSchema,
  rowSchema,
  rowSchema,
  rowSchema,
  z.number(),
  z.number(),
  rowSchema,
]);

/** Reads the reply of metrics/snapshot.lua. */
export function parseSnapshot(reply: unknown): LedgerSnapshot {
  const [nowMs, gauges, totals, queued, dead, overdue, outboxTasks, deadNow] = replySchema.parse(reply);
  const ageMs = (oldest: unknown[]) => (oldest.length < 2 ? 0 : Math.max(nowMs - Number(oldest[1]), 0));
  return {
    nowMs,
    states: Object.entries(fieldsOf(gauges)).map(([key, value]) => parseCount(key.split("|"), value)),
    totals: groupTotals(fieldsOf(totals)),
    oldestQueuedAgeMs: ageMs(queued),
    oldestDeadAgeMs: ageMs(dead),
    overdue,
    outboxTasks,
    deadLetters: Object.entries(fieldsOf(deadNow)).map(([key, value]) => parseCount(key.split("|"), value)),
  };
}

function groupTotals(fields: Record<string, unknown>): Map<string, LabelledCount[]> {
  const totals = new Map<string, LabelledCount[]>();
  for (const [key, value] of Object.entries(fields)) {
    const [name = "", ...labels] = key.split("|");
    totals.set(name, [...(totals.get(name) ?? []), parseCount(labels, value)]);
  }
  return totals;
}

function parseCount([publisher, label = ""]: string[], value: unknown): LabelledCount {
  return { publisher: publisherIdSchema.parse(publisher), label, value: Number(value) };
}
