/**
 * Rewrites of Redis' files. Redis appends each write to its append-only file, so a text that has left its memory stays on
 * disk until the file is rewritten. Redis does that by itself only once the file has grown. So workers have it done at an
 * interval, and when an operator asks. If Redis saves snapshots as well, it saves a new one.
 *
 * Any worker takes the next step; the record in Redis says which one (maintenance/plan-rewrite.lua).
 */
import { redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { StoreKeys } from "../redis/keys.ts";
import { fieldsOf, numberOf, type RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";

export interface RewritesParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly log: StoreLog;
}

/** Who asks for a rewrite, and why, for the audit. */
export interface RewriteOrder {
  readonly by: string;
  readonly reason: string;
}

/** What is known of the rewrites. Times are milliseconds since 1970 by Redis' clock. */
export interface RewriteRecord {
  /** When workers began to look after it; undefined if none has. */
  readonly sinceMs: number | undefined;
  /** The start of the latest rewrite that succeeded. What had left Redis by then isn't in its files any more. */
  readonly finishedMs: number | undefined;
  /** 0: only when an operator asks. */
  readonly intervalMs: number;
  /** Redis doesn't permit it, or doesn't know the command. */
  readonly isDenied: boolean;
}

/** A failed rewrite is started again after this. */
const START_AGAIN_MS = 5000;
/** However often operators ask, no third rewrite is started for them within this. */
const TWO_WITHIN_MS = 300_000;
/** A worker that was told to start a rewrite has had Redis begin it within this, or it has died. */
const BEGIN_WITHIN_MS = 10_000;

/** Fields of INFO. */
const RUNNING = ["aof_rewrite_in_progress", "aof_rewrite_scheduled", "rdb_bgsave_in_progress"];
const LATEST = ["aof_last_bgrewrite_status", "rdb_last_bgsave_status"];

const planSchema = z.tuple([z.number(), z.number(), z.number()]);

/** A field of Redis' INFO. */
type InfoField = (name: string) => string | undefined;

export class Rewrites {
  readonly #parts: RewritesParts;
  #wasDenied = false;

  constructor(parts: RewritesParts) {
    this.#parts = parts;
  }

  /** Starts a rewrite if one is due, and books that it has finished. `intervalMs` 0: only when an operator asks. */
  async runRound(intervalMs: number): Promise<void> {
    const { run, keys } = this.#parts;
    const plan = await run("maintenance/plan-rewrite", {
      keys: [keys.rewrites],
      args: [intervalMs, START_AGAIN_MS, TWO_WITHIN_MS],
    });
    const [isDue, isOpen, nowMs] = planSchema.parse(plan);
    if (isDue === 1) {
      await this.#start(nowMs);
    } else if (isOpen === 1) {
      await this.#bookEnd(nowMs);
    }
  }

  /**
   * Asks the workers for a rewrite, and notes that in the audit. One of them starts it within seconds, or once five minutes have
   * passed since the latest but one started.
   */
  async request({ by, reason }: RewriteOrder): Promise<void> {
    const { run, keys } = this.#parts;
    await run("maintenance/request-rewrite", {
      keys: [keys.rewrites, keys.audit],
      args: [by, JSON.stringify({ reason, rewrite: "asked" })],
    });
  }

  async load(): Promise<RewriteRecord> {
    const { redis, keys } = this.#parts;
    const stored = fieldsOf(await redis.call("HGETALL", keys.rewrites));
    return {
      sinceMs: numberOf(stored["since"], "since"),
      finishedMs: numberOf(stored["finished"], "finished"),
      intervalMs: numberOf(stored["interval"], "interval") ?? 0,
      isDenied: stored["denied"] !== undefined,
    };
  }

  async #start(startedMs: number): Promise<void> {
    const { redis, keys, log } = this.#parts;
    try {
      // Asked before: if Redis restarts in between, the run is another one, and the rewrite is started again.
      const run = runOf(await this.#loadInfo());
      await redis.call("BGREWRITEAOF");
      await redis.hset(keys.rewrites, { begun: startedMs, run });
      log.info({ event: "rewrite_started" });
      this.#wasDenied = false;
    } catch (err) {
      if (await this.#isDenied(err)) {
        return;
      }
      // Usually one is running already. It may have begun before what is to leave the disk has left Redis.
      await redis.hset(keys.rewrites, "again", 1);
      throw err;
    }
  }

  async #bookEnd(nowMs: number): Promise<void> {
    const { redis, keys, log } = this.#parts;
    const fields = ["started", "saved", "denied", "begun", "run"];
    const [started, saved, denied, begun, run] = await redis.hmget(keys.rewrites, ...fields);
    const info = await this.#loadInfo();
    if (!started || denied || RUNNING.some((name) => info(name) !== "0")) {
      return;
    }
    if (begun !== started && Math.abs(nowMs - Number(started)) < BEGIN_WITHIN_MS) {
      return;
    }
    const failed = begun === started ? whyFailed(info, run) : "not_begun";
    if (failed !== undefined) {
      await redis.hset(keys.rewrites, "again", 1);
      log.warn({ event: "rewrite_failed", why: failed });
    } else if (saved !== started && (await this.#savesSnapshots())) {
      await this.#saveSnapshot(started);
    } else {
      await redis.hset(keys.rewrites, "finished", started);
      log.info({ event: "rewrite_finished" });
    }
  }

  /** All from one moment. */
  async #loadInfo(): Promise<InfoField> {
    const info = String(await this.#parts.redis.call("INFO"));
    return (name) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
  }

  /** Redis can't save a snapshot while it rewrites its append-only file, so this comes after it. */
  async #saveSnapshot(started: string): Promise<void> {
    const { redis, keys } = this.#parts;
    try {
      await redis.call("BGSAVE");
      await redis.hset(keys.rewrites, "saved", started);
    } catch (err) {
      if (!(await this.#isDenied(err))) {
        throw err;
      }
    }
  }

  /** Whether Redis doesn't permit a command, or doesn't know it. Then it is recorded, and told once. */
  async #isDenied(err: unknown): Promise<boolean> {
    const { redis, keys, log } = this.#parts;
    const kind = redisErrorKind(err);
    if (kind !== "no_permission" && kind !== "unknown_command") {
      return false;
    }
    await redis.hset(keys.rewrites, "denied", 1);
    if (!this.#wasDenied) {
      log.warn({ event: "rewrite_denied", err });
    }
    this.#wasDenied = true;
    return true;
  }

  /** Whether Redis saves snapshots by itself. If our user may not ask, nobody knows, and none is saved. */
  async #savesSnapshots(): Promise<boolean> {
    const reply: unknown = await this.#parts.redis.config("GET", "save").catch(() => []);
    return /"save"[,:]"\d/.test(JSON.stringify(reply) ?? "");
  }
}

/** Names the run of Redis: each start of its process has another id. */
function runOf(info: InfoField): string {
  return info("run_id") ?? "";
}

/**
 * Why a rewrite that the run `begunBy` of Redis has begun, and that doesn't run any more, can't have succeeded: a field of INFO.
 * A Redis that has restarted reports no failure of what its predecessor left undone.
 */
function whyFailed(info: InfoField, begunBy: string | null | undefined): string | undefined {
  return begunBy === runOf(info) ? LATEST.find((name) => info(name) !== "ok") : "run_id";
}
