import { publisherIdSchema } from "@adrelay/contract";
import { z } from "zod";
import { fieldsOf } from "./entry.ts";

/** A value of the books under its names. */
export interface LabelledCount {
  readonly publisher: string;
  readonly label: string;
  readonly value: number;
}

/** All of the ledger's counts at one moment. */
export interface LedgerSnapshot {
  /** When, by Redis' clock. */
  readonly nowMs: number;
  /** Ad responses by state; for an end state all that ever ended there. `label` is the state. */
  readonly states: readonly LabelledCount[];
  /** Counters by name; `label` is the outcome, status or reason, or empty. */
  readonly totals: ReadonlyMap<string, readonly LabelledCount[]>;
  readonly oldestQueuedAgeMs: number;
  readonly oldestDeadAgeMs: number;
  /** Awaiting ad responses whose deadline has passed and which the sweep has not reached yet. */
  readonly overdue: number;
  readonly payloadWork: number;
  /** Dead letters that stand now; `label` is the reason. */
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

export function parseSnapshot(reply: unknown): LedgerSnapshot {
  const [nowMs, gauges, totals, queued, dead, overdue, payloadWork, standing] = replySchema.parse(reply);
  const ageMs = (oldest: unknown[]) => (oldest.length < 2 ? 0 : Math.max(nowMs - Number(oldest[1]), 0));
  return {
    nowMs,
    states: Object.entries(fieldsOf(gauges)).map(([key, value]) => parseCount(key.split("|"), value)),
    totals: groupTotals(fieldsOf(totals)),
    oldestQueuedAgeMs: ageMs(queued),
    oldestDeadAgeMs: ageMs(dead),
    overdue,
    payloadWork,
    deadLetters: Object.entries(fieldsOf(standing)).map(([key, value]) => parseCount(key.split("|"), value)),
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
