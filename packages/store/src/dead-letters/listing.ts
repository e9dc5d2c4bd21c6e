/** Pages of ad responses in one state, for operators. */
import { type LISTED_STATES, openTurnSchema, type PublisherId } from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { type LedgerEntry, parseEntry } from "../entry.ts";
import { idOf, type StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";

/** States whose ad responses are indexed by a time: of death, of queueing, of the deadline. */
type ListedState = (typeof LISTED_STATES)[number];

/** Where a page ended. A caller may keep it as long as it likes. */
export interface ListPlace {
  readonly timeMs: number;
  readonly member: string;
}

/**
 * Which dead letters, of any publisher, reason or code if none is given. `code` is the provider's own. They died at `sinceMs`
 * or later, before `untilMs`. `onlyUnknown`: the ledger has no injection of their ids.
 */
export interface DeadFilter {
  readonly publisher: PublisherId | undefined;
  readonly reason: DeadReason | undefined;
  readonly code: string | undefined;
  readonly onlyUnknown?: boolean | undefined;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

export interface ListQuestion extends DeadFilter {
  readonly state: ListedState;
  readonly limit: number;
  readonly after: ListPlace | undefined;
}

/** A page. It is the last one if `next` is undefined; a page that isn't full need not be the last. */
export interface ListPage {
  readonly entries: readonly LedgerEntry[];
  readonly next: ListPlace | undefined;
}

/**
 * How many members one call may read. It needs more than a page only to search queued or awaiting ones for a publisher, or for unknown ids.
 */
const SEEN_MAX = 2000;

export interface ListingParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
}

/** One page, newest first. */
export async function loadPage(parts: ListingParts, question: ListQuestion): Promise<ListPage> {
  const { members, next } = await loadMembers(parts, question);
  const entries = await Promise.all(members.map((one) => loadEntry(parts, one)));
  return {
    // One that has left the state since then belongs to no page of it.
    entries: entries.filter((entry) => entry !== undefined).filter((entry) => entry.state === question.state),
    next,
  };
}

/** The members of one page, newest first; see dead-letters/list-entries.lua. */
export async function loadMembers(
  { run, keys }: Pick<ListingParts, "run" | "keys">,
  question: ListQuestion,
): Promise<{ readonly members: readonly string[]; readonly next: ListPlace | undefined }> {
  const { state, limit, after, ...filter } = question;
  const reply = await run("dead-letters/list-entries", {
    keys: keys.forEntry(""),
    args: [
      state,
      ...filterArgs(filter),
      limit,
      after?.timeMs ?? "",
      after?.member ?? "",
      keys.entryPrefix,
      SEEN_MAX,
    ],
  });
  const [members, timeMs, member] = pageSchema.parse(reply);
  return { members, next: member === "" ? undefined : { timeMs, member } };
}

/** Loads one entry, and its turn if that is open; undefined if the ledger doesn't know it, or has forgotten it. */
export async function loadEntry(
  { redis, keys }: Pick<ListingParts, "redis" | "keys">,
  member: string,
): Promise<LedgerEntry | undefined> {
  const entry = parseEntry(idOf(member), await redis.call("HGETALL", keys.entryPrefix + member));
  if (entry?.state !== "awaiting" || !entry.hasTurn) {
    return entry;
  }
  const [dialect, steps] = await redis.hmget(keys.turn(member), "d", "n");
  const turn = openTurnSchema.safeParse({ dialect, steps: Number(steps) }).data;
  return turn === undefined ? entry : { ...entry, turn };
}

const pageSchema = z.tuple([z.array(z.string()), z.coerce.number(), z.string()]);

/** A filter as scripts take it: publisher, reason, code, unknown, since, until; '' for none. */
export function filterArgs(filter: DeadFilter): (string | number)[] {
  const { publisher, reason, code, onlyUnknown, sinceMs, untilMs } = filter;
  const unknown = onlyUnknown === true ? "1" : "";
  return [publisher ?? "", reason ?? "", code ?? "", unknown, sinceMs ?? "", untilMs ?? ""];
}
