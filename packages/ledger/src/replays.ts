/**
 * Bulk replays: what dead letters one covers, how far it has come, and its steps.
 *
 * A replay is a record in Redis and nothing else. Whoever runs `runBatch` takes it a step further; no
 * process owns it, and none that dies takes anything with it (docs/adr/0012).
 */
import { randomUUID } from "node:crypto";
import { publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { fieldsOf } from "./entry.ts";
import { type LedgerKeys, ledgerKeys } from "./keys.ts";
import type { LedgerOptions } from "./ledger.ts";
import { type DeadFilter, filterArgs } from "./listing.ts";
import { type PayloadWork, parseNotes } from "./payload-work.ts";
import { CANCEL_CODES, type CancelCode, decodeReply } from "./reply-codes.ts";
import { createScriptRunner, type RunScript } from "./scripts.ts";

export const REPLAY_STATES = ["running", "completed", "cancelled"] as const;
export type ReplayState = (typeof REPLAY_STATES)[number];

export interface ReplayOrder {
  readonly filter: DeadFilter;
  readonly ratePerSecond: number;
  /** Who starts it, for its record and the audit. */
  readonly by: string;
}

const time = z.coerce.number();
const none = (text: string) => (text === "" ? undefined : text);
const noneOr = <T extends z.ZodType<unknown, string>>(type: T) =>
  z.string().transform(none).pipe(type.optional());

const replaySchema = z
  .object({
    state: z.enum(REPLAY_STATES),
    publisher: noneOr(publisherIdSchema),
    reason: noneOr(z.enum(DEAD_REASONS)),
    since: noneOr(z.string().transform(Number)),
    until: noneOr(z.string().transform(Number)),
    rate: z.coerce.number(),
    matched: z.coerce.number(),
    replayed: z.coerce.number(),
    created: time,
    by: z.string(),
    updated: time,
    ended: time.optional(),
  })
  .transform((stored) => ({
    state: stored.state,
    filter: {
      publisher: stored.publisher,
      reason: stored.reason,
      sinceMs: stored.since,
      untilMs: stored.until,
    } satisfies DeadFilter,
    ratePerSecond: stored.rate,
    /** How many dead letters it covered when it began, and how many it has put back on the queue. */
    matched: stored.matched,
    replayed: stored.replayed,
    createdAtMs: stored.created,
    createdBy: stored.by,
    updatedAtMs: stored.updated,
    endedAtMs: stored.ended,
  }));

/** A bulk replay as it stands. */
export type BulkReplay = z.infer<typeof replaySchema> & { readonly id: string };

/** What one step did. `unknown`: its record has gone. */
export interface ReplayBatch {
  readonly state: ReplayState | "unknown";
  /** The queue's part of each letter that went back to queued. */
  readonly moved: readonly PayloadWork[];
  /** Redis' time of the step, in microseconds. */
  readonly atUs: number;
}

export class Replays {
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

  /** Begins one; answers its id. */
  async start(order: ReplayOrder): Promise<string> {
    const id = randomUUID();
    await this.#begin(id, order, "");
    return id;
  }

  /** How many dead letters one would cover. */
  count(filter: DeadFilter): Promise<number> {
    return this.#begin("", { filter, ratePerSecond: 1, by: "" }, "dry");
  }

  async cancel(id: string, by: string): Promise<CancelCode> {
    const args = [id, by, this.#retentionMs];
    return decodeReply(CANCEL_CODES, await this.#run("cancel-replay", this.#keys.forReplay(id), args));
  }

  async find(id: string): Promise<BulkReplay | undefined> {
    return parseReplay(id, await this.#redis.call("HGETALL", this.#keys.replayPrefix + id));
  }

  /** The latest ones, newest first. */
  async latest(limit: number): Promise<BulkReplay[]> {
    const args = [limit, this.#keys.replayPrefix];
    const found = fieldsOf(await this.#run("latest-replays", this.#keys.forReplay(""), args));
    return Object.entries(found).flatMap(([id, fields]) => parseReplay(id, fields) ?? []);
  }

  /** Ids of those that run. */
  running(): Promise<string[]> {
    return this.#redis.smembers(this.#keys.runningReplays);
  }

  /**
   * Takes one a step further, as far as its rate allows; see scripts/replay-batch.lua. The queue's part of
   * what was moved is the caller's for `graceMs`, then whoever takes payload work.
   */
  async runBatch(id: string, limit: number, graceMs: number): Promise<ReplayBatch> {
    const args = [id, limit, this.#keys.entryPrefix, graceMs, this.#retentionMs];
    const reply = await this.#run("replay-batch", this.#keys.forReplay(id), args);
    const [state, moved, atUs] = batchSchema.parse(reply);
    return { state: state === "" ? "unknown" : state, moved: parseNotes(moved), atUs };
  }

  async #begin(id: string, { filter, ratePerSecond, by }: ReplayOrder, mode: "" | "dry"): Promise<number> {
    const details = {
      publisher: filter.publisher ?? null,
      reason: filter.reason ?? null,
      since: isoOrNull(filter.sinceMs),
      until: isoOrNull(filter.untilMs),
      rate_per_second: ratePerSecond,
    };
    const args = [
      id,
      ...filterArgs(filter),
      ratePerSecond,
      by,
      JSON.stringify(details),
      this.#keys.replayPrefix,
      mode,
    ];
    return z.number().parse(await this.#run("start-replay", this.#keys.forReplay(id), args));
  }
}

const batchSchema = z.tuple([z.enum([...REPLAY_STATES, ""]), z.array(z.string()), z.number()]);

function parseReplay(id: string, reply: unknown): BulkReplay | undefined {
  const stored = fieldsOf(reply);
  return Object.keys(stored).length === 0 ? undefined : { id, ...replaySchema.parse(stored) };
}

function isoOrNull(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}
