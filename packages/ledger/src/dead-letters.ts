/**
 * What is done to dead letters one by one, and the work on the queue that it leaves.
 *
 * The ledger moves first, with a note of the queue's part in the same step; the queue follows (invariant 3).
 * Whoever does that part takes the note off, so a crash in between leaves a note that comes up again.
 */
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import { type LedgerKeys, ledgerKeys, memberOf } from "./keys.ts";
import type { LedgerOptions } from "./ledger.ts";
import { type PayloadWork, parseNote, parseNotes } from "./payload-work.ts";
import { decodeReply, LEAVE_DEAD_CODES, type LeaveDeadCode } from "./reply-codes.ts";
import { createScriptRunner, type RunScript } from "./scripts.ts";

/** What came of taking a letter out of the dead letters; `work` is the queue's part. */
export type LeaveDeadResult =
  | { readonly kind: "booked"; readonly work: PayloadWork }
  | { readonly kind: Exclude<LeaveDeadCode, "booked"> };

interface LeaveDead {
  readonly id: AdResponseId;
  readonly event: "replay" | "discard";
  readonly by: string;
  readonly details: Readonly<Record<string, string>>;
}

const leaveDeadSchema = z.tuple([z.number(), z.string()]);

export class DeadLetters {
  readonly #redis: Redis;
  readonly #run: RunScript;
  readonly #keys: LedgerKeys;
  readonly #retentionMs: number;

  constructor({ redis, recordRetentionMs, partition = "0" }: LedgerOptions) {
    this.#redis = redis;
    this.#run = createScriptRunner(redis);
    this.#keys = ledgerKeys(partition);
    this.#retentionMs = recordRetentionMs;
  }

  /** Puts a dead letter back to queued. `by` is for the audit. */
  replay(id: AdResponseId, by: string): Promise<LeaveDeadResult> {
    return this.#leave({ id, event: "replay", by, details: {} });
  }

  /** Ends a dead letter for good. `by` and `reason` are for the audit. */
  discard(id: AdResponseId, by: string, reason: string): Promise<LeaveDeadResult> {
    return this.#leave({ id, event: "discard", by, details: { reason } });
  }

  /** Makes a dead letter of what is queued and whose text the queue doesn't hold; true if it did. */
  async losePayload(id: AdResponseId, payloadKey: string): Promise<boolean> {
    const member = memberOf(id);
    const keys = [...this.#keys.forScript(member), payloadKey];
    return (await this.#run("lose-payload", keys, [member])) === 1;
  }

  /**
   * Takes work on the queue that a replay, discard or expiry left, oldest first. What isn't finished within
   * the lease comes up again.
   */
  async takePayloadWork(limit: number, leaseMs: number): Promise<PayloadWork[]> {
    const reply = await this.#run("take-payload-work", this.#keys.forScript(""), [limit, leaseMs]);
    return parseNotes(reply);
  }

  /** Marks payload work as done. */
  async finishPayloadWork(...done: readonly PayloadWork[]): Promise<void> {
    if (done.length > 0) {
      await this.#redis.zrem(this.#keys.payloadWork, ...done.map(({ note }) => note));
    }
  }

  /**
   * Indexes dead letters that a worker of an older version left out of the index of kinds, from a rank on.
   * Answers where to go on, 0 after the last one; undefined if none is missing.
   */
  async indexMissing(fromRank: number, limit: number): Promise<number | undefined> {
    const args = [fromRank, limit, this.#keys.entryPrefix];
    const next = z.number().parse(await this.#run("index-dead", this.#keys.forScript(""), args));
    return next < 0 ? undefined : next;
  }

  async #leave({ id, event, by, details }: LeaveDead): Promise<LeaveDeadResult> {
    const member = memberOf(id);
    const keys = [...this.#keys.forScript(member), this.#keys.audit];
    const args = [member, event, this.#retentionMs, by, JSON.stringify(details)];
    const [code, note] = leaveDeadSchema.parse(await this.#run("leave-dead", keys, args));
    const kind = decodeReply(LEAVE_DEAD_CODES, code);
    return kind === "booked" ? { kind, work: parseNote(note) } : { kind };
  }
}
