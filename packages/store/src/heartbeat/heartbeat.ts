/**
 * A process' heartbeat in Redis, by which it also notices that Redis lost data.
 *
 * 1. Each heartbeat is counted, and keeps this process' record, from which the other processes know that it runs.
 * 2. If Redis has forgotten this process' last heartbeat, it lost data: it was emptied, an old backup was restored, or
 *    the append-only file was cut short. Each process reports a loss once. Redis keeps it for processes that start
 *    later.
 *
 * Not noticed: the loss of writes after the last heartbeat that survived a crash, and a loss while no process ran.
 */
import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { Counter, type Registry } from "prom-client";
import { z } from "zod";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";

/** What a process says about itself. */
export interface ProcessIdentity {
  readonly role: "gateway" | "worker";
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAtMs: number;
}

const recordSchema = z.object({
  role: z.enum(["gateway", "worker"]),
  host: z.string(),
  pid: z.number(),
  version: z.string(),
  startedAtMs: z.number(),
  /** How far its clock is ahead of Redis'; null until its second heartbeat. */
  clockSkewMs: z.number().nullable(),
});

/** A running process, as the other processes see it. */
export type RelayProcess = z.infer<typeof recordSchema> & {
  /** Time of its last heartbeat, by Redis' clock. */
  readonly seenAtMs: number;
};

/** What Redis held at a heartbeat. */
interface HeldCounts {
  readonly queued: number;
  readonly dead: number;
  readonly awaiting: number;
}

/** The latest loss of data. */
export interface DataLoss {
  readonly atMs: number;
  readonly detail: string;
}

export interface HeartbeatOptions {
  readonly identity: ProcessIdentity;
  /** Where the losses that this process finds are counted. */
  readonly registry: Registry;
}

export interface HeartbeatParts extends HeartbeatOptions {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly log: StoreLog;
}

/** A process without a heartbeat for this long counts as gone. */
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

/** The reply to a heartbeat. */
interface Reply {
  readonly nowMs: number;
  readonly epoch: string;
  readonly beat: number;
  readonly held: HeldCounts;
  readonly loss: DataLoss | undefined;
}

export class Heartbeat {
  readonly #parts: HeartbeatParts;
  readonly #losses: Counter;
  readonly #id = randomUUID();
  #latest: Reply | undefined;
  #clockSkewMs: number | undefined;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
    this.#losses = createDataLossCounter(parts.registry);
  }

  /** One heartbeat. Rejects while Redis is away; then it doesn't count. */
  async beat(): Promise<void> {
    const { run, keys, identity, log } = this.#parts;
    const { epoch = "", beat = 0, nowMs = 0, held } = this.#latest ?? {};
    const record = renderRecord(identity, this.#clockSkewMs);
    const text = held === undefined ? "" : describeLoss(held);
    const sentAtMs = Date.now();
    const args = [this.#id, record, epoch, beat, nowMs, text, SILENCE_MAX_MS, LOSS_KEPT_MS];
    const { isLost, ...reply } = parseReply(
      await run("heartbeat/heartbeat", { keys: keys.forHeartbeat, args }),
    );
    // Redis' time is the time of the middle of the round trip, to within half of it.
    this.#clockSkewMs = Math.round((sentAtMs + Date.now()) / 2 - reply.nowMs);
    this.#latest = reply;
    if (isLost && held !== undefined) {
      this.#losses.inc();
      log.error({ event: "redis_data_lost", ...held });
    }
  }

  /** Removes this process' record, at a graceful stop. If Redis is away, the record expires after a minute. */
  async leave(): Promise<void> {
    const { redis, keys } = this.#parts;
    await redis.hdel(keys.processes, this.#id).catch(() => {});
  }

  /** What readiness says of a loss in the last hour, as of this process' last heartbeat. Doesn't ask Redis. */
  warnings(): Record<string, string> {
    const { loss, nowMs = 0 } = this.#latest ?? {};
    return loss === undefined || nowMs - loss.atMs >= LOSS_WARNED_MS
      ? {}
      : { redis_data: `data lost at ${new Date(loss.atMs).toISOString()}: ${loss.detail}` };
  }

  /** The latest loss of the last 24 hours, as Redis has it. */
  async loadLoss(): Promise<DataLoss | undefined> {
    const { redis, keys } = this.#parts;
    const [, atMs, detail] = /^(\d+) (.*)$/s.exec((await redis.get(keys.dataLoss)) ?? "") ?? [];
    return atMs === undefined ? undefined : { atMs: Number(atMs), detail: detail ?? "" };
  }

  /** The processes with a heartbeat in the last minute, by role and start. */
  async loadProcesses(): Promise<RelayProcess[]> {
    const { redis, keys } = this.#parts;
    const [stored, [seconds]] = await Promise.all([redis.hvals(keys.processes), redis.time()]);
    const nowMs = Number(seconds) * 1000;
    return (
      stored
        .flatMap((text) => parseRecord(text) ?? [])
        // After a step of Redis' clock, an old heartbeat may lie after now.
        .filter(({ seenAtMs }) => Math.abs(nowMs - seenAtMs) <= SILENCE_MAX_MS)
        .sort((a, b) => a.role.localeCompare(b.role) || a.startedAtMs - b.startedAtMs)
    );
  }
}

/** The counter of the losses that a process finds. A heartbeat creates it. */
export function createDataLossCounter(registry: Registry): Counter {
  return new Counter({
    name: "adrelay_redis_data_losses_total",
    help: "How often this process found that Redis had lost data.",
    registers: [registry],
  });
}

function renderRecord(identity: ProcessIdentity, clockSkewMs: number | undefined): string {
  const { role, host, pid, version, startedAtMs } = identity;
  const record = { role, host, pid, version, startedAtMs, clockSkewMs: clockSkewMs ?? null };
  return JSON.stringify(record satisfies z.infer<typeof recordSchema>);
}

/** Reads "beat seen_ms record", as heartbeat/heartbeat.lua writes it; undefined if it can't be read. */
function parseRecord(stored: string): RelayProcess | undefined {
  const [, seenAtMs = "", json = ""] = /^\d+ (\d+) (.*)$/s.exec(stored) ?? [];
  try {
    return { ...recordSchema.parse(JSON.parse(json)), seenAtMs: Number(seenAtMs) };
  } catch {
    // It may be of another version. The list goes on without it.
    return undefined;
  }
}

function parseReply(reply: unknown): Reply & { readonly isLost: boolean } {
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
