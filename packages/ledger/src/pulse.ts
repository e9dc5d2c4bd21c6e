/**
 * A process' signs of life in Redis, and its memory of what Redis held.
 *
 * 1. Each pulse is counted, and keeps this process' record, from which the others know that it runs.
 * 2. A pulse that Redis doesn't know any more was lost (an emptied Redis, an old backup, an AOF cut short):
 *    then data were lost with it. That is told once by each process, and noted in Redis for those to come.
 *
 * Not noticed: what is lost between the latest pulse and a crash that leaves that pulse on disk, and a loss
 * while no process ran, since nobody remembers.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { Counter, type Registry } from "prom-client";
import { z } from "zod";
import { type LedgerKeys, ledgerKeys } from "./keys.ts";
import { type ProcessIdentity, parseRecord, type RelayProcess, renderRecord } from "./process-record.ts";
import { createScriptRunner, type RunScript } from "./scripts.ts";

export type { ProcessIdentity, RelayProcess } from "./process-record.ts";

/** What Redis held at a pulse. */
export interface HeldCounts {
  readonly queued: number;
  readonly dead: number;
  readonly awaiting: number;
}

/** The latest loss of data, as it is noted in Redis. */
export interface DataLoss {
  readonly atMs: number;
  readonly detail: string;
}

export interface PulseOptions {
  readonly redis: Redis;
  readonly identity: ProcessIdentity;
  /** Where this process' losses are counted. */
  readonly registry: Registry;
  /** Told once of each loss that this process finds. */
  onDataLost(heldBefore: HeldCounts): void;
  readonly partition?: string;
}

/** A process that was not heard of for this long is taken for gone. */
const SILENCE_MAX_MS = 60_000;
const LOSS_KEPT_MS = 24 * 3_600_000;
/** How long readiness warns of a loss. */
const LOSS_WARNED_MS = 3_600_000;

const replySchema = z.tuple([
  z.number(),
  z.string(),
  z.number(),
  z.number(),
  z.number(),
  z.number(),
  z.number(),
  z.number(),
  z.string(),
]);

/** What a pulse was answered. */
interface Answered {
  readonly nowMs: number;
  readonly epoch: string;
  readonly beat: number;
  readonly held: HeldCounts;
  readonly loss: DataLoss | undefined;
}

export class Pulse {
  readonly #redis: Redis;
  readonly #run: RunScript;
  readonly #keys: LedgerKeys;
  readonly #identity: ProcessIdentity;
  readonly #onDataLost: PulseOptions["onDataLost"];
  readonly #losses: Counter;
  readonly #id = randomUUID();
  #latest: Answered | undefined;
  #clockSkewMs: number | undefined;

  constructor({ redis, identity, registry, onDataLost, partition = "0" }: PulseOptions) {
    this.#redis = redis;
    this.#run = createScriptRunner(redis);
    this.#keys = ledgerKeys(partition);
    this.#identity = identity;
    this.#onDataLost = onDataLost;
    this.#losses = new Counter({
      name: "adrelay_redis_data_losses_total",
      help: "How often this process found that Redis had lost data.",
      registers: [registry],
    });
  }

  /** One pulse; rejects while Redis is away, and is none then. */
  async beat(): Promise<void> {
    const { epoch = "", beat = 0, nowMs = 0, held } = this.#latest ?? {};
    const record = renderRecord(this.#identity, this.#clockSkewMs);
    const text = held === undefined ? "" : describeLoss(held);
    const sentAtMs = Date.now();
    const args = [this.#id, record, epoch, beat, nowMs, text, SILENCE_MAX_MS, LOSS_KEPT_MS];
    const reply = await this.#run("pulse", this.#keys.forPulse, args);
    const { isLost, ...answered } = parseReply(reply);
    // Redis' time is that of the middle of the round trip, give or take half of it.
    this.#clockSkewMs = Math.round((sentAtMs + Date.now()) / 2 - answered.nowMs);
    this.#latest = answered;
    if (isLost && held !== undefined) {
      this.#losses.inc();
      this.#onDataLost(held);
    }
  }

  /** Removes this process' record: it stops in good order. Without Redis the record goes after a minute. */
  async leave(): Promise<void> {
    await this.#redis.hdel(this.#keys.processes, this.#id).catch(() => {});
  }

  /** What readiness says of a loss of the last hour, as this process last heard of it; asks nobody. */
  warnings(): Record<string, string> {
    const { loss, nowMs = 0 } = this.#latest ?? {};
    return loss === undefined || nowMs - loss.atMs >= LOSS_WARNED_MS
      ? {}
      : { redis_data: `data lost at ${new Date(loss.atMs).toISOString()}: ${loss.detail}` };
  }

  /** The latest loss of the last 24 hours, as Redis has it. */
  async loadLoss(): Promise<DataLoss | undefined> {
    const [, atMs, detail] = /^(\d+) (.*)$/s.exec((await this.#redis.get(this.#keys.dataLoss)) ?? "") ?? [];
    return atMs === undefined ? undefined : { atMs: Number(atMs), detail: detail ?? "" };
  }

  /** The processes that were heard of within the last minute, by role and start. */
  async loadProcesses(): Promise<RelayProcess[]> {
    const [stored, [seconds]] = await Promise.all([
      this.#redis.hvals(this.#keys.processes),
      this.#redis.time(),
    ]);
    const nowMs = Number(seconds) * 1000;
    return stored
      .flatMap((text) => parseRecord(text) ?? [])
      .filter(({ seenAtMs }) => nowMs - seenAtMs <= SILENCE_MAX_MS)
      .sort((a, b) => a.role.localeCompare(b.role) || a.startedAtMs - b.startedAtMs);
  }
}

function parseReply(reply: unknown): Answered & { readonly isLost: boolean } {
  const [nowMs, epoch, beat, queued, dead, awaiting, lost, lostAtMs, detail] = replySchema.parse(reply);
  return {
    nowMs,
    epoch,
    beat,
    held: { queued, dead, awaiting },
    loss: lostAtMs === 0 ? undefined : { atMs: lostAtMs, detail },
    isLost: lost === 1,
  };
}

function describeLoss({ queued, dead, awaiting }: HeldCounts): string {
  const held = `about ${queued} queued, ${dead} dead and ${awaiting} awaiting`;
  return `Redis was emptied or went back to an earlier time; shortly before it held ${held}`;
}
