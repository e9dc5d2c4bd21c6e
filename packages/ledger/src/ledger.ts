/**
 * The state of each ad response, in Redis.
 *
 * Each transition is one script that checks the state it leaves, moves it, keeps the indexes and adds to
 * the counters, so the numbers are exact after a crash and two workers can't count twice.
 *
 * 1. A transition that already happened changes and counts nothing.
 * 2. The clock is Redis' own: skew between machines moves no deadline.
 * 3. Nothing that a user wrote is stored here (invariant 6): texts stay in the queue, and end with it.
 *
 * Not guaranteed: that a rejected call had no effect. A connection can break after Redis has run a script.
 */
import type { AdResponseId, PublisherId } from "@adrelay/contract";
import { TurnBatch } from "@adrelay/turn-batch";
import type { Redis } from "ioredis";
import { z } from "zod";
import { type BeginResult, callOfBegin, callOfSettle, parseBegin } from "./attempts.ts";
import { fieldsOf, type LedgerEntry, parseEntry } from "./entry.ts";
import { callOfRecord, type InjectionRecord } from "./injections.ts";
import { idOf, type LedgerKeys, ledgerKeys, memberOf } from "./keys.ts";
import { BOOKED_CODES, type BookedCode, decodeReply, readEach } from "./reply-codes.ts";
import { createScriptRunner, type RunScript, type ScriptCall, type ScriptName } from "./scripts.ts";
import { type LedgerSnapshot, parseSnapshot } from "./snapshot.ts";

export interface LedgerOptions {
  readonly redis: Redis;
  /** How long the record of an ended ad response is kept. */
  readonly recordRetentionMs: number;
  /** One partition now; tests use their own. */
  readonly partition?: string;
}

export interface BeginRequest {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
  readonly textHash: string;
  /** Where the queue keeps the payload, and the field of it that holds the text's fingerprint. */
  readonly payload: { readonly key: string; readonly field: string };
}

/** What came of one attempt. */
export interface Settlement {
  readonly id: AdResponseId;
  readonly event: "deliver" | "refuse" | "die" | "retry";
  /** The verdict of a delivery, the reason of a death. */
  readonly label: string;
  readonly code: string;
  readonly providerAckId: string | undefined;
  readonly durationMs: number;
  /** How many attempts were booked when this one began. */
  readonly attemptsBefore: number;
  /** Wait before the next attempt; for `retry` alone. */
  readonly delayMs: number;
  /** Whether a failure is the acknowledgment's; for `retry` alone: a probe's is not. */
  readonly isCounted: boolean;
  /** Of a `die` alone: bytes of the caller's body, and the provider's public error if it told one. */
  readonly death?: { readonly sizeBytes: number; readonly providerError: string | undefined };
  /** Told in the same step to the gateway that waits there, if one does. */
  readonly notify: { readonly channel: string; readonly message: string } | undefined;
}

export interface QueuedQuestion {
  readonly limit: number;
  readonly ageMinMs: number;
}

export interface QueuedEntry {
  readonly id: AdResponseId;
  /** Its attempt should have been made by now, and it doesn't wait for its provider. */
  readonly isOverdue: boolean;
}

export class Ledger {
  readonly #redis: Redis;
  readonly #run: RunScript;
  readonly #keys: LedgerKeys;
  readonly #retentionMs: number;
  readonly #records: TurnBatch<InjectionRecord, boolean>;
  readonly #begins: TurnBatch<BeginRequest, BeginResult>;
  readonly #settles: TurnBatch<Settlement, BookedCode>;

  constructor({ redis, recordRetentionMs, partition = "0" }: LedgerOptions) {
    this.#redis = redis;
    this.#run = createScriptRunner(redis);
    this.#keys = ledgerKeys(partition);
    this.#retentionMs = recordRetentionMs;
    this.#records = new TurnBatch((records) => {
      const call = callOfRecord(this.#keys, records, this.#retentionMs);
      return this.#runForEach("record-injection", call, (reply) => reply === 1);
    });
    this.#begins = new TurnBatch((asked) => {
      return this.#runForEach("begin", callOfBegin(this.#keys, asked), parseBegin);
    });
    this.#settles = new TurnBatch((settlements) => {
      const call = callOfSettle(this.#keys, settlements, this.#retentionMs);
      return this.#runForEach("settle", call, (reply) => decodeReply(BOOKED_CODES, reply));
    });
  }

  /**
   * Books an injection's answer; false if the id was known before. Those of one turn of the event loop are booked at once;
   * see scripts/record-injection.lua.
   */
  recordInjection(record: InjectionRecord): Promise<boolean> {
    return this.#records.ask(record);
  }

  /** Loads one ad response; undefined if the ledger doesn't know it, or no longer. */
  async find(id: AdResponseId): Promise<LedgerEntry | undefined> {
    const reply = await this.#redis.call("HGETALL", this.#keys.entryPrefix + memberOf(id));
    return parseEntry(id, reply);
  }

  /**
   * Tells how an acknowledgment stands whose attempt is to begin, and books it if the queue alone holds it. Those of one
   * turn of the event loop are asked at once; see scripts/begin.lua.
   */
  begin(asked: BeginRequest): Promise<BeginResult> {
    return this.#begins.ask(asked);
  }

  /** Books what came of an attempt. Those of one turn of the event loop are booked at once; see scripts/settle.lua. */
  settle(settlement: Settlement): Promise<BookedCode> {
    return this.#settles.ask(settlement);
  }

  /** Queued entries from the `rank`-th on (0 is the oldest), of an age at the least; see scripts/queued-batch.lua. */
  async queuedFrom(rank: number, { limit, ageMinMs }: QueuedQuestion): Promise<QueuedEntry[]> {
    const args = [rank, limit, ageMinMs, this.#keys.entryPrefix, this.#keys.parkedPrefix];
    const reply = await this.#run("queued-batch", this.#keys.forScript(""), args);
    return Object.entries(fieldsOf(reply)).map(([member, isOverdue]) => {
      return { id: idOf(member), isOverdue: isOverdue === 1 };
    });
  }

  /** Ids whose attempt is overdue by `graceMs` or more by Redis' clock; see scripts/overdue-attempts.lua. */
  async overdueAttempts(limit: number, graceMs: number): Promise<AdResponseId[]> {
    const args = [limit, graceMs, this.#keys.entryPrefix];
    const reply = await this.#run("overdue-attempts", this.#keys.forScript(""), args);
    return z.array(z.string()).parse(reply).map(idOf);
  }

  /** Moves overdue ad responses to missed; answers how many were looked at, at most `limit`. */
  sweepMissed(limit: number): Promise<number> {
    return this.#sweep(["miss", limit, this.#retentionMs, this.#keys.entryPrefix]);
  }

  /** Expires dead letters older than `deadLetterRetentionMs`; answers how many were looked at. */
  sweepExpired(limit: number, deadLetterRetentionMs: number): Promise<number> {
    return this.#sweep(["expire", limit, this.#retentionMs, this.#keys.entryPrefix, deadLetterRetentionMs]);
  }

  /** All counts at one moment. */
  async snapshot(): Promise<LedgerSnapshot> {
    return parseSnapshot(await this.#run("snapshot", this.#keys.forScript(""), []));
  }

  /** Runs a script for many, each with a reply of its own, or with an error of its own. */
  async #runForEach<T>(
    name: ScriptName,
    { keys, args }: ScriptCall,
    parse: (reply: unknown) => T,
  ): Promise<(T | Error)[]> {
    return readEach(await this.#run(name, keys, args), parse);
  }

  async #sweep(args: readonly (string | number)[]): Promise<number> {
    return z.number().parse(await this.#run("sweep", this.#keys.forScript(""), args));
  }
}
