/**
 * A process' heartbeat in Redis, by which it also notices that Redis lost data.
 *
 * 1. Each heartbeat is counted, and keeps this process' record, from which the other processes know that it runs.
 * 2. If Redis has forgotten this process' last heartbeat, it lost data: it was emptied, an old backup was restored, or
 *    the append-only file was cut short. Each process reports a loss once. Redis keeps it for processes that start
 *    later.
 * 3. It is a write, so it shows whether Redis accepts writes, and whether it has room for intake.
 *
 * Not noticed: the loss of writes after the last heartbeat that survived a crash, and a loss while no process ran.
 */
import type { Redis } from "ioredis";
import { Counter, type Registry } from "prom-client";
import { z } from "zod";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import { Lifeline } from "./lifeline.ts";
import {
  type ProcessIdentity,
  type PublishersFileNote,
  parseRecord,
  type RelayProcess,
  renderRecord,
} from "./process-record.ts";
import { type WriteState, WriteWatch } from "./write-state.ts";

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
  /** Which publishers' file is in force now. */
  publishersFile?(): PublishersFileNote;
  /** Where the losses that this process finds are counted. */
  readonly registry: Registry;
  /** A connection that only listens to channels, for the lifeline. Without one, the process has no lifeline. */
  readonly subscriber?: Redis;
}

export interface HeartbeatParts extends HeartbeatOptions {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly processId: string;
  readonly log: StoreLog;
  /** Whether this process runs jobs. */
  holdsJobs(): boolean;
}

/** The record of a process without a heartbeat for this long is removed. */
const SILENCE_MAX_MS = 60_000;
const LOSS_KEPT_MS = 24 * 3_600_000;
/**
 * Redis counts a call's arguments as memory in use. A heartbeat is small, and an acknowledgment isn't. So it carries this,
 * in order to find that there is no room before acknowledgments of a usual size are refused.
 */
const ROOM = " ".repeat(64 * 1024);
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
  z.number(),
  z.string(),
]);

const listSchema = z.tuple([z.number(), z.array(z.string())]);

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
  readonly #watch: WriteWatch;
  readonly #channel: string;
  readonly #lifeline: Lifeline | undefined;
  #latest: Reply | undefined;
  #clockSkewMs: number | undefined;

  constructor(parts: HeartbeatParts) {
    this.#parts = parts;
    this.#losses = createDataLossCounter(parts.registry);
    const { subscriber, keys, processId, log } = parts;
    this.#watch = new WriteWatch(log);
    this.#channel = subscriber === undefined ? "" : keys.lifelinePrefix + processId;
    this.#lifeline = subscriber && new Lifeline({ subscriber, channel: this.#channel, log });
  }

  /** One heartbeat. Rejects while Redis is away or refuses writes; then it doesn't count. */
  async beat(): Promise<void> {
    try {
      this.#watch.onAnswer(await this.#beatOnce());
    } catch (error) {
      this.#watch.onError(error);
      throw error;
    }
  }

  /** Whether Redis accepts writes, as of the latest heartbeats. Doesn't ask Redis. */
  get writes(): WriteState {
    return this.#watch.state;
  }

  /** Resolves with how Redis refuses what needs memory; empty if it doesn't. */
  async #beatOnce(): Promise<string> {
    const { run, keys, identity, processId, log } = this.#parts;
    await this.#lifeline?.open();
    const { epoch = "", beat = 0, nowMs = 0, held } = this.#latest ?? {};
    const record = renderRecord(identity, this.#clockSkewMs, this.#parts.publishersFile?.());
    const text = held === undefined ? "" : describeLoss(held);
    const sentAtMs = Date.now();
    const args = [processId, record, epoch, beat, nowMs, text, SILENCE_MAX_MS, LOSS_KEPT_MS, this.#channel];
    const { isLost, hasLifeline, refusal, ...reply } = parseReply(
      await run("heartbeat/heartbeat", { keys: keys.forHeartbeat, args: [...args, ROOM] }),
    );
    // Redis' time is the time of the middle of the round trip, to within half of it.
    this.#clockSkewMs = Math.round((sentAtMs + Date.now()) / 2 - reply.nowMs);
    this.#latest = reply;
    this.#lifeline?.report(hasLifeline);
    if (isLost && held !== undefined) {
      this.#losses.inc();
      log.error({ event: "redis_data_lost", ...held });
    }
    return refusal;
  }

  /**
   * Removes this process' record, at a graceful stop. If Redis is away, the record expires after a minute. If attempts hang
   * longer than the stop may take, the record stays: by it other workers find that this process is gone, and return its jobs.
   */
  async leave(): Promise<void> {
    const { redis, keys, processId, holdsJobs } = this.#parts;
    if (!holdsJobs()) {
      await redis.hdel(keys.processes, processId).catch(() => {});
    }
  }

  /** What readiness says of refused writes and of a loss in the last hour. Doesn't ask Redis. */
  warnings(): Record<string, string> {
    const { loss, nowMs = 0 } = this.#latest ?? {};
    const { writes } = this;
    const why = writes.kind === "accepted" ? undefined : writes.why;
    return {
      ...(why === undefined ? {} : { redis_writes: `Redis ${why}` }),
      ...(loss === undefined || nowMs - loss.atMs >= LOSS_WARNED_MS
        ? {}
        : { redis_data: `data lost at ${new Date(loss.atMs).toISOString()}: ${loss.detail}` }),
    };
  }

  /** The latest loss of the last 24 hours, as Redis has it. */
  async loadLoss(): Promise<DataLoss | undefined> {
    const { redis, keys } = this.#parts;
    const [, atMs, detail] = /^(\d+) (.*)$/s.exec((await redis.get(keys.dataLoss)) ?? "") ?? [];
    return atMs === undefined ? undefined : { atMs: Number(atMs), detail: detail ?? "" };
  }

  /** The processes with a heartbeat in the last minute that aren't gone, by role and start. */
  async loadProcesses(): Promise<RelayProcess[]> {
    const { run, keys } = this.#parts;
    const reply = await run("heartbeat/list-processes", {
      keys: keys.forHeartbeat.slice(0, 2),
      args: [keys.lifelinePrefix, SILENCE_MAX_MS],
    });
    const [nowMs, stored] = listSchema.parse(reply);
    return stored
      .flatMap((text) => parseRecord(text) ?? [])
      .map((one) => ({ ...one, silentMs: nowMs - one.seenAtMs }))
      .sort((a, b) => a.role.localeCompare(b.role) || a.startedAtMs - b.startedAtMs);
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

interface ParsedReply extends Reply {
  readonly isLost: boolean;
  readonly hasLifeline: boolean;
  readonly refusal: string;
}

function parseReply(reply: unknown): ParsedReply {
  const [nowMs, epoch, beat, queued, dead, awaiting, lost, lostAtMs, detail, hasLifeline, refusal] =
    replySchema.parse(reply);
  return {
    nowMs,
    epoch,
    beat,
    held: { queued, dead, awaiting },
    loss: lostAtMs === 0 ? undefined : { atMs: lostAtMs, detail },
    isLost: lost === 1,
    hasLifeline: hasLifeline === 1,
    refusal,
  };
}

function describeLoss({ queued, dead, awaiting }: HeldCounts): string {
  const held = `about ${queued} queued, ${dead} dead and ${awaiting} awaiting`;
  return `Redis was emptied or went back to an earlier time; shortly before it held ${held}`;
}
