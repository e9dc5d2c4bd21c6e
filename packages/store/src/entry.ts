/** The ledger's record of one ad response, as it is read from Redis. */
import {
  type AdResponseId,
  type OpenTurn,
  type PublisherId,
  publisherIdSchema,
  uuidOfHex,
  type Verdict,
  verdictSchema,
} from "@adrelay/contract";
import { type Finding, parseFinding } from "@adrelay/core";
import { z } from "zod";
import { fieldsOf, numberOf, stateOf, textOf, unreadable } from "./redis/scripts.ts";

/** How many of the latest attempts an entry keeps. */
export const ATTEMPTS_KEPT = 20;

/** The record of one ad response. Times are milliseconds since 1970 by Redis' clock. */
export type LedgerEntry = EntryBase &
  (
    | {
        readonly state: "awaiting";
        /** Not read with the entry; see `loadEntry`. */
        readonly turn?: OpenTurn;
      }
    | { readonly state: "missed"; readonly endedAtMs: number | undefined }
    | { readonly state: "unacknowledgeable" | "abandoned" }
    | (Acknowledged & {
        readonly state: "queued";
        readonly nextAttemptAtMs: number | undefined;
        /** The provider's public error at the last attempt. */
        readonly providerError: string | undefined;
      })
    | (Acknowledged & {
        readonly state: "delivered";
        readonly endedAtMs: number | undefined;
        /** Undefined after a 409 that didn't say how the first acknowledgment ended. */
        readonly verdict: Verdict | undefined;
        readonly providerAckId: string | undefined;
      })
    | (Acknowledged & { readonly state: "refused"; readonly endedAtMs: number | undefined })
    | (Acknowledged & {
        readonly state: "dead" | "discarded" | "expired";
        readonly endedAtMs: number | undefined;
        readonly death: Death;
      })
  );

interface EntryBase {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
  /** Undefined if the ledger knows of no injection. */
  readonly injection: InjectionTimes | undefined;
  /** A turn of the model proxy has it, or had it (journal/drop-turn.lua). */
  readonly hasTurn: boolean;
}

interface InjectionTimes {
  readonly recordedAtMs: number;
  /** Undefined unless the caller got an ad. One with a turn waits for the turn's end. */
  readonly deadlineAtMs: number | undefined;
}

/** What an entry holds from the acceptance of its acknowledgment on. */
export interface Acknowledged {
  readonly textHash: string | undefined;
  readonly acceptedAtMs: number;
  /** When it was last put on the queue: accepted, or replayed. */
  readonly queuedAtMs: number;
  /** All attempts, and those that failed since it was last put on the queue. */
  readonly attempts: number;
  readonly failedAttempts: number;
  /** The latest attempts, oldest first. */
  readonly attemptLog: readonly AttemptRecord[];
  readonly isLate: boolean;
  /** Bytes of the caller's body; undefined unless it is, or once was, a dead letter. */
  readonly sizeBytes: number | undefined;
  /** What was found of the ad in the text; undefined unless a turn wrote it. */
  readonly finding: Finding | undefined;
}

/** Why an acknowledgment is, or was, a dead letter. */
interface Death {
  readonly reason: string | undefined;
  /** The provider's public error at the last death. */
  readonly providerError: string | undefined;
}

const attemptOutcomeSchema = z.enum(["deliver", "refuse", "retry", "ambiguous", "die"]);
/** `ambiguous`: the attempt failed, and the provider may have received it. */
type AttemptOutcome = z.infer<typeof attemptOutcomeSchema>;

/** One attempt at delivery. */
interface AttemptRecord {
  readonly atMs: number;
  readonly code: string;
  readonly durationMs: number;
  readonly outcome: AttemptOutcome;
}

/** What an entry holds of its acknowledgment; undefined if none was accepted. */
export function acknowledgedOf(entry: LedgerEntry): Acknowledged | undefined {
  return "acceptedAtMs" in entry ? entry : undefined;
}

/** The turn that an entry waits for; undefined if there is none. */
export function openTurnOf(entry: LedgerEntry): OpenTurn | undefined {
  return entry.state === "awaiting" ? entry.turn : undefined;
}

/** The code of an entry's last attempt; undefined if none was made. */
export function lastCodeOf(entry: LedgerEntry): string | undefined {
  return acknowledgedOf(entry)?.attemptLog.at(-1)?.code;
}

/**
 * Reads an entry from Redis' flat reply; undefined if there is none. Field names in Redis are short, because there is
 * one hash for each ad response. The reading is by hand, because every acceptance and every attempt reads some: a schema
 * takes several times as long. Throws a StoreReplyError for an entry that can't be read.
 */
export function parseEntry(id: AdResponseId, reply: unknown): LedgerEntry | undefined {
  const stored = fieldsOf(reply);
  return Object.keys(stored).length === 0 ? undefined : readEntry(id, stored);
}

/** As in journal/drop-turn.lua. */
const JOURNALED = "j";

type Stored = Readonly<Record<string, unknown>>;

function readEntry(id: AdResponseId, stored: Stored): LedgerEntry {
  const base = {
    id,
    publisher: publisherIdSchema.parse(stored["p"]),
    injection: readInjection(stored),
    hasTurn: stored["T"] === JOURNALED,
  };
  const state = stateOf(stored["s"]);
  switch (state) {
    case "awaiting":
    case "unacknowledgeable":
    case "abandoned":
      return { ...base, state };
    case "missed":
      return { ...base, state, endedAtMs: numberOf(stored["e"], "e") };
    case "queued":
      return {
        ...base,
        state,
        ...readAcknowledged(stored),
        nextAttemptAtMs: numberOf(stored["w"], "w"),
        providerError: textOf(stored["y"], "y"),
      };
    case "delivered":
      return {
        ...base,
        state,
        ...readEnded(stored),
        verdict: stored["o"] === undefined ? undefined : verdictSchema.safeParse(stored["o"]).data,
        providerAckId: ackIdOf(textOf(stored["i"], "i")),
      };
    case "refused":
      return { ...base, state, ...readEnded(stored) };
    case "dead":
    case "discarded":
    case "expired":
      return { ...base, state, ...readEnded(stored), death: readDeath(stored) };
    default:
      return state satisfies never;
  }
}

function readInjection(stored: Stored): InjectionTimes | undefined {
  const [recordedAtMs, deadlineAtMs] = [numberOf(stored["r"], "r"), numberOf(stored["d"], "d")];
  return recordedAtMs === undefined ? undefined : { recordedAtMs, deadlineAtMs };
}

function readAcknowledged(stored: Stored): Acknowledged {
  const acceptedAtMs = numberOf(stored["a"], "a") ?? unreadable("a");
  return {
    textHash: textOf(stored["t"], "t"),
    acceptedAtMs,
    queuedAtMs: numberOf(stored["q"], "q") ?? acceptedAtMs,
    attempts: numberOf(stored["n"], "n") ?? 0,
    failedAttempts: numberOf(stored["f"], "f") ?? 0,
    attemptLog: parseAttempts(textOf(stored["l"], "l")),
    isLate: textOf(stored["L"], "L") !== undefined,
    sizeBytes: numberOf(textOf(stored["z"], "z"), "z"),
    finding: parseFinding(textOf(stored["M"], "M")),
  };
}

/** If an attempt ended the entry, the time is that of the attempt in the log. Otherwise it is a field. */
function readEnded(stored: Stored): Acknowledged & { readonly endedAtMs: number | undefined } {
  const acknowledged = readAcknowledged(stored);
  return { ...acknowledged, endedAtMs: numberOf(stored["e"], "e") ?? acknowledged.attemptLog.at(-1)?.atMs };
}

function readDeath(stored: Stored): Death {
  return {
    reason: textOf(stored["x"], "x"),
    providerError: textOf(stored["y"], "y"),
  };
}

/** An id of 32 hex digits is a UUID that was stored without its dashes, to save memory. */
function ackIdOf(stored: string | undefined): string | undefined {
  return stored !== undefined && HEX_ID.test(stored) ? uuidOfHex(stored) : stored;
}

const HEX_ID = /^[0-9a-f]{32}$/;

function parseAttempts(log: string | undefined): AttemptRecord[] {
  const lines = log?.split("\n").filter((line) => line !== "") ?? [];
  return lines.map((line) => {
    const [atMs, code, durationMs, outcome] = line.split(",");
    return {
      atMs: Number(atMs),
      code: code ?? "",
      durationMs: Number(durationMs),
      // A process of a newer version may have written another one.
      outcome: attemptOutcomeSchema.safeParse(outcome).data ?? "retry",
    };
  });
}
