/**
 * The outbox: what a replay, a discard or an expiry leaves to do on the queue.
 *
 * The ledger moves first and writes a task in the same step; the queue follows (invariant 3). A task is removed once it is
 * done. So a crash in between leaves a task that comes up again.
 */
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { DeliveryQueue, RequeueResult } from "../bullmq/queue.ts";
import { idOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";

/** Something to be done on the queue, because a letter left the dead letters. */
export interface OutboxTask {
  readonly action: "requeue" | "remove";
  readonly id: AdResponseId;
  /** As it is written in Redis: `requeue:ID:TIME` or `remove:ID`. Each replay of a letter writes a new one. */
  readonly text: string;
}

export const outboxTaskSchema = z.string().transform((text): OutboxTask => {
  const [action, member = ""] = text.split(":");
  return { action: z.enum(["requeue", "remove"]).parse(action), id: idOf(member), text };
});

export interface OutboxParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: DeliveryQueue;
  readonly log: StoreLog;
}

/** No task is due later than this, neither by a lease nor because the worker that wrote it does it itself. */
export const TASK_AHEAD_MAX_MS = 3000;

/** How many tasks are done at the same time. Their commands go to Redis in one write. */
const CONCURRENCY = 100;

export class Outbox {
  readonly #parts: OutboxParts;

  constructor(parts: OutboxParts) {
    this.#parts = parts;
  }

  /** Leases tasks that are due, oldest first. A task that isn't done within the lease comes up again. */
  async leaseDue(limit: number, leaseMs: number): Promise<OutboxTask[]> {
    const { run, keys } = this.#parts;
    const reply = await run("dead-letters/lease-outbox-tasks", {
      keys: keys.forEntry(""),
      args: [limit, leaseMs],
    });
    return z.array(outboxTaskSchema).parse(reply);
  }

  /** Does tasks. One that can't be done now comes up again. Rejects if Redis can't remove the tasks that were done. */
  async run(tasks: readonly OutboxTask[]): Promise<void> {
    const done: OutboxTask[] = [];
    const left = tasks.values();
    const lane = async () => {
      for (const task of left) {
        if (await this.#tryTask(task)) {
          done.push(task);
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, tasks.length) }, lane));
    await this.remove(done);
  }

  /** Does one task right after its letter was moved. Never rejects: what fails here is left to the workers. */
  async follow(task: OutboxTask): Promise<void> {
    try {
      if (await this.#isDone(task)) {
        await this.remove([task]);
      }
    } catch (err) {
      const { action, id } = task;
      this.#parts.log.warn({ event: "payload_work_left_to_worker", action, ad_response_id: id, err });
    }
  }

  /** Removes tasks that were done. */
  async remove(done: readonly OutboxTask[]): Promise<void> {
    const { redis, keys } = this.#parts;
    if (done.length > 0) {
      await redis.zrem(keys.outbox, ...done.map(({ text }) => text));
    }
  }

  /** Puts a failed job back. If its text is gone, the entry becomes a dead letter with the reason `payload_lost`. */
  async requeue(id: AdResponseId): Promise<RequeueResult> {
    const { queue, log } = this.#parts;
    const result = await queue.requeue(id);
    // The acknowledgment may have been delivered meanwhile, which removes the payload. The ledger knows.
    if (result === "gone" && (await this.losePayload(id))) {
      log.error({ event: "payload_lost", ad_response_id: id });
    }
    return result;
  }

  /** Makes a dead letter of a queued entry whose text the queue doesn't hold; true if it did. */
  async losePayload(id: AdResponseId): Promise<boolean> {
    const { run, keys, queue } = this.#parts;
    const member = memberOf(id);
    const reply = await run("dead-letters/lose-payload", {
      keys: [...keys.forEntry(member), queue.payloadKey(id)],
      args: [member],
    });
    return reply === 1;
  }

  async #tryTask(task: OutboxTask): Promise<boolean> {
    try {
      return await this.#isDone(task);
    } catch (err) {
      // A running attempt holds the job, or Redis is down. A later round does the task.
      const { action, id } = task;
      this.#parts.log.warn({ event: "payload_work_postponed", action, ad_response_id: id, err });
      return false;
    }
  }

  /** Does a task; false if it is to be done again later. */
  async #isDone({ action, id }: OutboxTask): Promise<boolean> {
    if (action === "requeue") {
      return (await this.requeue(id)) !== "held_by_attempt";
    }
    await this.#parts.queue.remove(id);
    return true;
  }
}
