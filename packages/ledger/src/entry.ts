import {
  type AdResponseId,
  type PublisherId,
  publisherIdSchema,
  uuidOfHex,
  type Verdict,
  verdictSchema,
} from "@adrelay/contract";
import { ENTRY_STATES, type EntryState } from "@adrelay/core";
import { z } from "zod";
import { LedgerReplyError } from "./reply-codes.ts";

/** How many of the latest attempts an entry keeps. */
export const ATTEMPTS_KEPT = 20;

/** One ad response as the ledger knows it. Times are milliseconds since 1970 by Redis' clock. */
export interface LedgerEntry {
  readonly id: AdResponseId;
  readonly state: StoredState;
  readonly publisher: PublisherId;
  readonly textHash: string | undefined;
  readonly recordedAtMs: number | undefined;
  readonly deadlineAtMs: number | undefined;
  readonly acceptedAtMs: number | undefined;
  /** When it was last put on the queue: accepted, or replayed. */
  readonly queuedAtMs: number | undefined;
  readonly nextAttemptAtMs: number | undefined;
  readonly endedAtMs: number | undefined;
  /** All attempts, and those that failed since it was last put on the queue. */
  readonly attempts: number;
  readonly failedAttempts: number;
  readonly lastCode: string | undefined;
  readonly verdict: Verdict | undefined;
  readonly deadReason: string | undefined;
  readonly providerAckId: string | undefined;
  readonly attemptLog: readonly AttemptRecord[];
  /** Bytes of the caller's body and the provider's public error, as they were at the latest death. */
  readonly sizeBytes: number | undefined;
  readonly providerError: string | undefined;
  readonly isLate: boolean;
}

type StoredState = Exclude<EntryState, "absent">;

/** When one of these was reached is told by the log alone, unless an older version wrote it down. */
const ENDED_BY_ATTEMPT: ReadonlySet<StoredState> = new Set(["delivered", "refused", "dead"]);

/** One attempt at delivery. */
export interface AttemptRecord {
  readonly atMs: number;
  readonly code: string;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
}

const outcomeSchema = z.enum(["deliver", "refuse", "retry", "die"]);
type AttemptOutcome = z.infer<typeof outcomeSchema>;

const STATES: ReadonlyMap<unknown, StoredState> = new Map(
  ENTRY_STATES.filter((state) => state !== "absent").map((state) => [state, state]),
);

/**
 * Reads an entry from Redis' flat reply; undefined for an id without one. Names are short in Redis, since there is one
 * hash for each ad response. By hand, as every intake and every attempt reads some: a schema takes several times as long.
 */
export function parseEntry(id: AdResponseId, reply: unknown): LedgerEntry | undefined {
  const stored = fieldsOf(reply);
  return Object.keys(stored).length === 0 ? undefined : readEntry(id, stored);
}

type Stored = Readonly<Record<string, unknown>>;

function readEntry(id: AdResponseId, stored: Stored): LedgerEntry {
  const text = (name: string) => textOf(stored[name], name);
  const number = (name: string) => numberOf(stored[name], name);
  const attemptLog = parseAttempts(text("l"));
  const latest = attemptLog.at(-1);
  const state = stateOf(stored["s"]);
  return {
    id,
    state,
    publisher: publisherIdSchema.parse(stored["p"]),
    textHash: text("t"),
    recordedAtMs: number("r"),
    deadlineAtMs: number("d"),
    acceptedAtMs: number("a"),
    queuedAtMs: number("q") ?? number("a"),
    nextAttemptAtMs: number("w"),
    endedAtMs: number("e") ?? (ENDED_BY_ATTEMPT.has(state) ? latest?.atMs : undefined),
    attempts: number("n") ?? 0,
    failedAttempts: number("f") ?? 0,
    // Entries of older versions have it in a field of its own as well.
    lastCode: latest?.code ?? text("c"),
    verdict: stored["o"] === undefined ? undefined : verdictSchema.safeParse(stored["o"]).data,
    deadReason: text("x"),
    providerAckId: ackIdOf(text("i")),
    attemptLog,
    sizeBytes: text("z") === undefined ? undefined : number("z"),
    providerError: text("y"),
    isLate: text("L") !== undefined,
  };
}

/** An id of 32 hex digits is a UUID that was stored without its dashes, to save memory. */
function ackIdOf(stored: string | undefined): string | undefined {
  return stored !== undefined && HEX_ID.test(stored) ? uuidOfHex(stored) : stored;
}

const HEX_ID = /^[0-9a-f]{32}$/;

/** A stored state. Throws a LedgerReplyError for anything else, as the next two do. */
export function stateOf(value: unknown): StoredState {
  return STATES.get(value) ?? illegible("s");
}

/** A stored text. An empty one stands for none. */
export function textOf(value: unknown, name: string): string | undefined {
  if (value === undefined || value === "") {
    return undefined;
  }
  return typeof value === "string" ? value : illegible(name);
}

/** A stored number. */
export function numberOf(value: unknown, name: string): number | undefined {
  if (value === undefined) {
    return undefined;
  }
  const number = Number(value);
  return Number.isFinite(number) ? number : illegible(name);
}

function illegible(name: string): never {
  throw new LedgerReplyError(`an entry's ${name} can't be read`);
}

/** Turns [field, value, field, value …] into an object. */
export function fieldsOf(reply: unknown): Record<string, unknown> {
  if (!Array.isArray(reply)) {
    throw new LedgerReplyError("the ledger sent no list of fields");
  }
  const fields: Record<string, unknown> = {};
  for (let at = 0; at + 1 < reply.length; at += 2) {
    fields[String(reply[at])] = reply[at + 1];
  }
  return fields;
}

function parseAttempts(log: string | undefined): AttemptRecord[] {
  const lines = log?.split("\n").filter((line) => line !== "") ?? [];
  return lines.map((line) => {
    const [atMs, code, durationMs, event] = line.split(",");
    // Lines of before outcomes were kept are of attempts that were followed by another, but for the last.
    const outcome = outcomeSchema.safeParse(event).data ?? "retry";
    return { atMs: Number(atMs), code: code ?? "", durationMs: Number(durationMs), outcome };
  });
}
