/** The record of a bulk replay or a bulk discard, as it is read from Redis. */
import { publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { z } from "zod";
import { fieldsOf } from "../redis/scripts.ts";
import { nameOfActor } from "./actor.ts";
import type { DeadFilter } from "./listing.ts";

/** When a bulk replay stops by itself: this share of the letters that ended failed again, and so many have ended. */
export interface StopRule {
  readonly share: number;
  readonly least: number;
}

/** `stopped`: most letters failed again. */
export type BulkState = "running" | "completed" | "cancelled" | "stopped";

/** What became of the letters that a bulk replay put back. */
interface ReplayOutcomes {
  readonly delivered: number;
  readonly refused: number;
  readonly discarded: number;
  /** Dead letters again, by reason. */
  readonly dead: Readonly<Record<string, number>>;
  /** Still queued. */
  readonly waiting: number;
}

interface BulkBase {
  readonly id: string;
  readonly state: BulkState;
  readonly filter: DeadFilter;
  /** How many it covered at its start. */
  readonly matched: number;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly updatedAtMs: number;
  readonly endedAtMs: number | undefined;
}

/** A bulk replay with its progress. */
export interface BulkReplay extends BulkBase {
  readonly ratePerSecond: number;
  /** Undefined if it never stops by itself. */
  readonly stop: StopRule | undefined;
  /** How many it has put back on the queue. */
  readonly replayed: number;
  readonly outcomes: ReplayOutcomes;
}

/** A bulk discard with its progress. */
export interface BulkDiscard extends BulkBase {
  /** What it discards. Queued acknowledgments have neither a reason nor a code in their filter. */
  readonly of: "dead" | "queued";
  /** How many it has discarded. */
  readonly discarded: number;
}

const number = z.coerce.number();
const counter = number.default(0);
const noneOr = <T extends z.ZodType<unknown, string>>(type: T) =>
  z
    .string()
    .default("")
    .transform((text) => (text === "" ? undefined : text))
    .pipe(type.optional());
const numberOrNone = noneOr(z.string().transform(Number));

const storedSchema = z.object({
  state: z.enum(["running", "completed", "cancelled"]),
  stopped: z.string().optional(),
  publisher: noneOr(publisherIdSchema),
  reason: noneOr(z.enum(DEAD_REASONS)),
  code: noneOr(z.string()),
  unknown: noneOr(z.string()),
  since: numberOrNone,
  until: numberOrNone,
  matched: number,
  created: number,
  by: z.string(),
  updated: number,
  ended: number.optional(),
});

const replaySchema = storedSchema.extend({
  rate: number,
  stop_share: numberOrNone,
  stop_least: counter,
  replayed: counter,
  delivered: counter,
  refused: counter,
  discarded: counter,
  waiting: counter,
});
const discardSchema = storedSchema.extend({
  discarded: counter,
  // Records of older versions don't have it.
  of: z.enum(["dead", "queued"]).default("dead"),
});

/** Reads a bulk replay from Redis' flat reply; undefined if there is none. */
export function parseReplay(id: string, reply: unknown): BulkReplay | undefined {
  const fields = fieldsOf(reply);
  if (Object.keys(fields).length === 0) {
    return undefined;
  }
  const stored = replaySchema.parse(fields);
  const { rate, replayed, delivered, refused, discarded, waiting } = stored;
  return {
    ...baseOf(id, stored),
    ratePerSecond: rate,
    stop:
      stored.stop_share === undefined ? undefined : { share: stored.stop_share, least: stored.stop_least },
    replayed,
    outcomes: { delivered, refused, discarded, dead: deathsOf(fields), waiting },
  };
}

/** Reads a bulk discard from Redis' flat reply; undefined if there is none. */
export function parseDiscard(id: string, reply: unknown): BulkDiscard | undefined {
  const fields = fieldsOf(reply);
  if (Object.keys(fields).length === 0) {
    return undefined;
  }
  const stored = discardSchema.parse(fields);
  const base = baseOf(id, stored);
  // Of very many queued ones, only some were counted at the start.
  return {
    ...base,
    of: stored.of,
    matched: Math.max(base.matched, stored.discarded),
    discarded: stored.discarded,
  };
}

function baseOf(id: string, stored: z.infer<typeof storedSchema>): BulkBase {
  const { publisher, reason, code, unknown, since, until } = stored;
  return {
    id,
    // Older versions know no state `stopped`, so it is a field of its own.
    state: stored.stopped === undefined ? stored.state : "stopped",
    filter: { publisher, reason, code, onlyUnknown: unknown === "1", sinceMs: since, untilMs: until },
    matched: stored.matched,
    createdAtMs: stored.created,
    createdBy: nameOfActor(stored.by),
    updatedAtMs: stored.updated,
    endedAtMs: stored.ended,
  };
}

const DEATH_FIELD = /^dead\|(.+)$/;

function deathsOf(fields: Readonly<Record<string, unknown>>): Record<string, number> {
  const deaths = Object.entries(fields).flatMap(([field, value]) => {
    const [, reason] = DEATH_FIELD.exec(field) ?? [];
    return reason === undefined ? [] : [[reason, Number(value)] as const];
  });
  return Object.fromEntries(deaths);
}
