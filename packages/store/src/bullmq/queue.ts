/**
 * The queue of acknowledgments, on BullMQ. The payload of a dead letter stays here as a failed job until it is delivered,
 * refused, discarded or expired: removeOnFail is off (invariant 7).
 */
import type { AdResponseId } from "@adrelay/contract";
import { ErrorCode, Job, type JobsOptions, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { z } from "zod";
import { jobIdOf, QUEUE_NAME } from "../redis/keys.ts";
import { shortenLocks } from "./locks.ts";
import { makeReturnJobs, type ReturnJobsScript } from "./return-jobs.ts";

export interface QueueOptions {
  /** Fails fast: a caller waits for the answer. */
  readonly redis: Redis;
  readonly queuePrefix: string;
}

type QueueJobState = "waiting" | "active" | "delayed" | "failed";
/** How many jobs are in each state. `failed`: the payloads of dead letters. */
export type QueueDepths = Readonly<Record<QueueJobState, number>>;
/**
 * The result of putting a failed job back. `on_its_way`: it waits already. `held_by_attempt`: an attempt holds it and may be
 * about to let it fail, so ask again.
 */
export type RequeueResult = "requeued" | "on_its_way" | "held_by_attempt" | "gone";
/**
 * The result of bringing a delayed job back. `not_yet`: it waits already, or an attempt holds it and may be about to delay
 * it, so ask again. `ended`: there is nothing to bring back.
 */
export type PromoteResult = "promoted" | "not_yet" | "ended";

/** An acknowledgment ends by its age, in the ledger. BullMQ's own count must never end it. */
const ATTEMPTS_UNBOUNDED = 1_000_000_000;
export const JOB_OPTIONS = {
  attempts: ATTEMPTS_UNBOUNDED,
  backoff: { type: "custom" },
  stackTraceLimit: 0,
} as const satisfies JobsOptions;
/** As BullMQ stores them with each job. */
export const JOB_OPTIONS_TEXT = JSON.stringify(JOB_OPTIONS);

/** A call came after the stop. Its caller should have been stopped before. */
class QueueStoppedError extends Error {
  override readonly name = "QueueStoppedError";
  override readonly message = "the queue is stopped";
}

export class DeliveryQueue {
  readonly #options: QueueOptions;
  #queue: Queue;
  #isStopped = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#queue = openQueue(options);
  }

  /** How a script returns the jobs of a worker that is gone. Throws if BullMQ has changed. */
  returnJobsScript(): ReturnJobsScript {
    return makeReturnJobs(this.#queue);
  }

  /** The key of a job's payload in Redis. */
  payloadKey(id: AdResponseId): string {
    return this.#queue.toKey(jobIdOf(id));
  }

  /** The key of a job's lock. It exists while an attempt holds the job. */
  lockKey(id: AdResponseId): string {
    return `${this.payloadKey(id)}:lock`;
  }

  /** Shortens locks that a step of Redis' clock made too long; resolves with how many. */
  shortenLocks(): Promise<number> {
    return shortenLocks(this.#options.redis, (name) => this.#queue.toKey(name));
  }

  /** With a job's id it makes the key of the job's payload. */
  get jobPrefix(): string {
    return this.#queue.toKey("");
  }

  /** Where jobs wait: BullMQ's list, from which it takes them first, and its sorted set. */
  get waitingKeys(): readonly string[] {
    return ["wait", "prioritized"].map((name) => this.#queue.toKey(name));
  }

  /** What a script needs in order to add jobs: where they wait, and the rest that bullmq/queue-job.lua reads. */
  get addingKeys(): readonly string[] {
    return [...this.waitingKeys, ...["meta", "active", "marker"].map((name) => this.#queue.toKey(name))];
  }

  /** Puts a failed job back, with all its attempts. */
  async requeue(id: AdResponseId): Promise<RequeueResult> {
    // A retry needs the job's id only. Loading the job would fetch its whole text.
    const job = new Job(await this.#ready(), "", {}, {}, jobIdOf(id));
    const first = await retryFailed(job);
    if (first !== "not_failed") {
      return first;
    }
    // One command for all: between two commands, the job could fail and look like one that waits.
    const place = await this.#placeOf(id);
    switch (place) {
      case "failed": {
        const second = await retryFailed(job);
        return second === "not_failed" ? "held_by_attempt" : second;
      }
      case "active":
      case "gone":
        return "held_by_attempt";
      case "waiting":
        return "on_its_way";
      default:
        return place satisfies never;
    }
  }

  /** Brings a delayed job back now. */
  async promote(id: AdResponseId): Promise<PromoteResult> {
    const job = new Job(await this.#ready(), "", {}, {}, jobIdOf(id));
    try {
      await job.promote();
      return "promoted";
    } catch (error) {
      if (codeOf(error) !== ErrorCode.JobNotInState) {
        throw error;
      }
      // It may have been delayed since, so ask again if the job is still there.
      const place = await this.#placeOf(id);
      return place === "waiting" || place === "active" ? "not_yet" : "ended";
    }
  }

  /** Removes a payload for good; it may be gone already. Rejects while an attempt runs. */
  async remove(id: AdResponseId): Promise<void> {
    const queue = await this.#ready();
    if ((await this.#options.redis.exists(this.payloadKey(id))) === 1) {
      // As for a retry, loading the job would fetch its whole text.
      await new Job(queue, "", {}, {}, jobIdOf(id)).remove();
    }
  }

  async depths(): Promise<QueueDepths> {
    const queue = await this.#ready();
    const {
      waiting = 0,
      prioritized = 0,
      active = 0,
      delayed = 0,
      failed = 0,
    } = await queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed");
    return { waiting: waiting + prioritized, active, delayed, failed };
  }

  /** Lets go of the connection, which belongs to the caller. Later calls reject. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#queue.close();
  }

  /**
   * Where a job is, at one moment. BullMQ's own answer searches all waiting jobs, which takes Redis milliseconds with a
   * million of them. A job that is stored and in no other place is waiting.
   */
  async #placeOf(id: AdResponseId): Promise<JobPlace> {
    const job = jobIdOf(id);
    const keys = [job, "failed", "active"].map((name) => this.#queue.toKey(name));
    return placeSchema.parse(await this.#options.redis.eval(PLACE_SCRIPT, keys.length, ...keys, job));
  }

  /**
   * BullMQ sends Redis one command when a queue is made. If the reply is lost, that queue rejects every call forever.
   * So this call rejects, and the next one gets a new queue.
   */
  async #ready(): Promise<Queue> {
    if (this.#isStopped) {
      throw new QueueStoppedError();
    }
    const queue = this.#queue;
    try {
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      if (this.#queue === queue && !this.#isStopped) {
        this.#queue = openQueue(this.#options);
        // It only removes its listeners from the connection, which is the caller's.
        queue.close().catch(() => {});
      }
      throw error;
    }
  }
}

function openQueue({ redis, queuePrefix }: QueueOptions): Queue {
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix: queuePrefix });
  // The caller of each command gets its error, and the connection logs its own errors.
  queue.on("error", () => {});
  return queue;
}

/** `waiting`: for its turn, or for its time. */
const placeSchema = z.enum(["gone", "failed", "active", "waiting"]);
type JobPlace = z.infer<typeof placeSchema>;

/** KEYS: 1 the job, 2 failed jobs, 3 running jobs: as many as there are attempts. ARGV: 1 the job's id. */
const PLACE_SCRIPT = `
  if redis.call('EXISTS', KEYS[1]) == 0 then
    return 'gone'
  elseif redis.call('ZSCORE', KEYS[2], ARGV[1]) then
    return 'failed'
  end
  return redis.call('LPOS', KEYS[3], ARGV[1]) and 'active' or 'waiting'
`;

/** BullMQ numbers the refusals of its scripts. */
function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

async function retryFailed(job: Job): Promise<"requeued" | "gone" | "not_failed"> {
  try {
    await job.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });
    return "requeued";
  } catch (error) {
    switch (codeOf(error)) {
      case ErrorCode.JobNotExist:
        return "gone";
      case ErrorCode.JobNotInState:
        return "not_failed";
      default:
        throw error;
    }
  }
}
