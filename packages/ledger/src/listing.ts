/** What an operator looks through: pages of ad responses in one state. */
import type { LISTED_STATES, PublisherId } from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { type LedgerEntry, parseEntry } from "./entry.ts";
import { idOf, type LedgerKeys, ledgerKeys } from "./keys.ts";
import type { LedgerOptions } from "./ledger.ts";
import { createScriptRunner, type RunScript } from "./scripts.ts";

/** States whose ad responses are indexed by time: of death, of queueing, of the deadline. */
export type ListedState = (typeof LISTED_STATES)[number];

/** Where a page ended; a caller may keep it as text for as long as it likes. */
export interface ListPlace {
  readonly timeMs: number;
  readonly member: string;
}

/** Which dead letters: of any publisher or reason if none is named. `sinceMs` is in, `untilMs` is out. */
export interface DeadFilter {
  readonly publisher: PublisherId | undefined;
  readonly reason: DeadReason | undefined;
  readonly sinceMs: number | undefined;
  readonly untilMs: number | undefined;
}

export interface ListQuestion extends DeadFilter {
  readonly state: ListedState;
  readonly limit: number;
  readonly after: ListPlace | undefined;
}

/** A page; with `next` undefined it is the last one. One that isn't full need not be the last. */
export interface ListPage {
  readonly entries: readonly LedgerEntry[];
  readonly next: ListPlace | undefined;
}

/** Members that one call may look at; only a publisher's queued or awaiting ones need more than the page. */
const SEEN_MAX = 2000;

export class Listing {
  readonly #redis: Redis;
  readonly #run: RunScript;
  readonly #keys: LedgerKeys;

  constructor({ redis, partition = "0" }: LedgerOptions) {
    this.#redis = redis;
    this.#run = createScriptRunner(redis);
    this.#keys = ledgerKeys(partition);
  }

  /** One page, newest first; see scripts/list-entries.lua. */
  async page({ state, limit, after, ...filter }: ListQuestion): Promise<ListPage> {
    const reply = await this.#run("list-entries", this.#keys.forScript(""), [
      state,
      ...filterArgs(filter),
      limit,
      after?.timeMs ?? "",
      after?.member ?? "",
      this.#keys.entryPrefix,
      SEEN_MAX,
    ]);
    const [members, timeMs, member] = pageSchema.parse(reply);
    const entries = await Promise.all(members.map((one) => this.#load(one)));
    return {
      // One that has left the state since is on no page of it.
      entries: entries.filter((entry) => entry !== undefined).filter((entry) => entry.state === state),
      next: member === "" ? undefined : { timeMs, member },
    };
  }

  async #load(member: string): Promise<LedgerEntry | undefined> {
    const reply = await this.#redis.call("HGETALL", this.#keys.entryPrefix + member);
    return parseEntry(idOf(member), reply);
  }
}

const pageSchema = z.tuple([z.array(z.string()), z.coerce.number(), z.string()]);

/** A filter as scripts take it: publisher, reason, since, until, each '' for none. */
export function filterArgs({ publisher, reason, sinceMs, untilMs }: DeadFilter): (string | number)[] {
  return [publisher ?? "", reason ?? "", sinceMs ?? "", untilMs ?? ""];
}
