/**
 * Acknowledgments that wait for delivery, on BullMQ. A dead letter's payload stays here as a failed job
 * until it is delivered, refused, discarded or expired: removeOnFail is off (invariant 7).
 *
 * A rejected `enqueue` means "fate unknown": the job may be stored. A repeat meets the same job.
 */
import type { AdResponseId, DeliveryJob } from "@adrelay/contract";
import { ErrorCode, Job, type JobsOptions, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { z } from "zod";
import { learnInsertion, type QueueInsertion } from "./insertion.ts";
import { FINGERPRINT_FIELD, jobIdOf, QUEUE_NAME, queuePrefix } from "./queue-names.ts";

export interface QueueOptions {
  /** Fails fast: a caller waits for the answer. */
  readonly redis: Redis;
  readonly partition?: string;
}

/** Where the queue keeps a payload, and the field of it that holds the text's fingerprint. */
export interface PayloadRef {
  readonly key: string;
  readonly field: string;
}

/** A job as a `QueueInsertion` takes it; its name is the text's fingerprint. */
export interface JobToInsert {
  readonly id: string;
  readonly data: string;
}

const JOB_STATES = ["waiting", "active", "delayed", "failed"] as const;
export type QueueJobState = (typeof JOB_STATES)[number];
/** What became of a wish to put a failed job back. */
export type RequeueResult = "requeued" | "on_its_way" | "held_by_attempt" | "gone";
export type PromoteResult = "promoted" | "not_yet" | "ended";
export type QueueCounts = Readonly<Record<QueueJobState, number>>;

/** Attempts end by age, in the ledger's books: BullMQ's own count must never end them. */
const ATTEMPTS_UNBOUNDED = 1_000_000_000;
const JOB_OPTIONS = {
  attempts: ATTEMPTS_UNBOUNDED,
  backoff: { type: "custom" },
  stackTraceLimit: 0,
} as const satisfies JobsOptions;

export class DeliveryQueue {
  readonly #options: QueueOptions;
  #queue: Queue;
  #isClosed = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#queue = openQueue(options);
  }

  /** Stores an acknowledgment. If one is stored for this ad response, that one stays as it is. */
  async enqueue(job: DeliveryJob, textHash: string): Promise<void> {
    const queue = await this.#ready();
    // Queue.add would store the id a second time, among the options.
    await new Job(queue, textHash, job, { ...JOB_OPTIONS }, jobIdOf(job.adResponseId)).addJob(
      await queue.backend.client,
    );
  }

  /** How another script queues jobs like `enqueue` does. Throws InsertionError if BullMQ has changed. */
  insertion(): QueueInsertion {
    return learnInsertion(this.#queue, JOB_OPTIONS);
  }

  /** An acknowledgment as `insertion` takes it. */
  jobToInsert(job: DeliveryJob): JobToInsert {
    return { id: jobIdOf(job.adResponseId), data: JSON.stringify(job) };
  }

  /** BullMQ keeps a job's name in a field of its own: it holds the text's fingerprint. */
  payloadRef(id: AdResponseId): PayloadRef {
    return { key: this.#queue.toKey(jobIdOf(id)), field: FINGERPRINT_FIELD };
  }

  /**
   * Puts a failed job back, with all its attempts. One that waits is on its way already. Of one that an
   * attempt holds nothing is known yet: it may be about to fail, for the reason before last, so ask again.
   */
  async requeue(id: AdResponseId): Promise<RequeueResult> {
    // The id is all that a retry needs: to load the job would fetch its whole text.
    const job = new Job(await this.#ready(), "", {}, {}, jobIdOf(id));
    const first = await retryFailed(job);
    if (first !== "not_failed") {
      return first;
    }
    // One question: asked twice, the job could fail in between and be taken for one that waits.
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

  /**
   * Brings a delayed job back now. `not_yet`: it waits already, or an attempt still holds it and may be about
   * to put it off: ask again. `ended`: there is nothing to bring back.
   */
  async promote(id: AdResponseId): Promise<PromoteResult> {
    // Promoting needs the job's id alone, so the job isn't loaded.
    const job = new Job(await this.#ready(), "", {}, {}, jobIdOf(id));
    try {
      await job.promote();
      return "promoted";
    } catch (error) {
      if (codeOf(error) !== ErrorCode.JobNotInState) {
        throw error;
      }
      // It may have been put off since: whatever is still there is worth another question.
      const place = await this.#placeOf(id);
      return place === "waiting" || place === "active" ? "not_yet" : "ended";
    }
  }

  /** Removes a payload for good; fine if it is gone already. Rejects while an attempt runs. */
  async remove(id: AdResponseId): Promise<void> {
    const job = await Job.fromId(await this.#ready(), jobIdOf(id));
    await job?.remove();
  }

  async counts(): Promise<QueueCounts> {
    const queue = await this.#ready();
    const counts = await queue.getJobCounts(...JOB_STATES);
    const of = (state: QueueJobState) => counts[state] ?? 0;
    return { waiting: of("waiting"), active: of("active"), delayed: of("delayed"), failed: of("failed") };
  }

  /** Closes the queue; the connection is its owner's. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#queue.close();
  }

  /**
   * Where a job is, at one moment. BullMQ's own answer looks through all that wait, milliseconds of Redis for each
   * question with a million of them: what is stored and nowhere else waits.
   */
  async #placeOf(id: AdResponseId): Promise<JobPlace> {
    const job = jobIdOf(id);
    const keys = [job, "failed", "active"].map((name) => this.#queue.toKey(name));
    return placeSchema.parse(await this.#options.redis.eval(PLACE_SCRIPT, keys.length, ...keys, job));
  }

  /**
   * BullMQ asks Redis one question when a queue is made, and if the answer gets lost that queue rejects every
   * call for ever. Then this call rejects, and the next one has a new queue.
   */
  async #ready(): Promise<Queue> {
    const queue = this.#queue;
    try {
      await queue.waitUntilReady();
      return queue;
    } catch (error) {
      if (this.#queue === queue && !this.#isClosed) {
        this.#queue = openQueue(this.#options);
        // It only takes its listeners off the connection, which is not its own.
        queue.close().catch(() => {});
      }
      throw error;
    }
  }
}

function openQueue({ redis, partition = "0" }: QueueOptions): Queue {
  const queue = new Queue(QUEUE_NAME, {
    connection: redis,
    prefix: queuePrefix(partition),
  });
  // Errors reach the caller of each command; the connection logs its own.
  queue.on("error", () => {});
  return queue;
}

/** `waiting`: for its turn or for its time. */
const placeSchema = z.enum(["gone", "failed", "active", "waiting"]);
type JobPlace = z.infer<typeof placeSchema>;

/** KEYS: 1 the job, 2 those that failed, 3 those that run: as many as attempts at once. ARGV: 1 the job's id. */
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
