/**
 * Deliveries of one worker: takes jobs off the queue, begins their attempts, has them made, and ends them.
 *
 * 1. The entry is read when an attempt starts. Or it came with the job, and is at most a second old. In an end state no
 *    attempt is made (invariant 3).
 * 2. A job that comes before its time is delayed again: its process died between the booking and the delay of the job.
 * 3. A job that this version can't read waits for a worker that can: it may be of a newer version.
 * 4. If making an attempt throws, the job is run again: a fault of ours ends no acknowledgment.
 */
import type { Redis } from "ioredis";
import { FairTurns } from "../bullmq/fair-turns.ts";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { type FetchedJob, QueueWorker } from "../bullmq/worker.ts";
import type { Circuits } from "../circuit/circuits.ts";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript, ScriptLibrary, ScriptRunner } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import { type AttemptStart, AttemptStarter, decideAttempt, type JobToBegin } from "./attempt-start.ts";
import {
  type AttemptResult,
  BookingRetry,
  type DueAttempt,
  JobCompleter,
  type JobEnd,
  type SettledAttempt,
} from "./job-completer.ts";
import { type JobHead, PayloadLoader, readFetched } from "./payload.ts";

export interface DeliveryOptions {
  /** How many jobs are held at the same time. */
  readonly concurrency: number;
  /** Bound of one attempt. The lock of a job outlives it by ten seconds. */
  readonly attemptTimeoutMs: number;
  /** Makes an attempt, or says that the acknowledgment must wait for its provider. */
  attempt(due: DueAttempt): Promise<AttemptResult>;
  /** Called once for each attempt, after its outcome was booked. */
  onSettled(settled: SettledAttempt): void;
}

export interface DeliveryParts {
  /** A connection that waits for Redis as long as it takes. BullMQ opens a second one like it to block on. */
  readonly waiting: { readonly redis: Redis; readonly scripts: ScriptRunner } | undefined;
  readonly processId: string;
  /** On a connection that fails fast. */
  readonly run: RunScript;
  readonly queue: DeliveryQueue;
  readonly library: ScriptLibrary;
  readonly keys: StoreKeys;
  readonly recordRetentionMs: number;
  readonly deliveredRetentionMs: number;
  readonly circuits: Circuits;
  readonly log: StoreLog;
  isStopping(): boolean;
}

/** The store was opened without the connection that deliveries need. */
class NoWaitingRedisError extends Error {
  override readonly name = "NoWaitingRedisError";
  override readonly message = "deliveries need `waitingRedis`: open the store with it";
}

const UNREADABLE_DELAY_MS = 60_000;

export class Deliveries {
  readonly #parts: DeliveryParts;
  readonly #fairTurns: FairTurns;
  #worker: QueueWorker | undefined;
  #isStopped = false;
  #hasEnded = false;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.#fairTurns = new FairTurns({ ...parts, onError: (err) => this.#reportQueueError(err) });
  }

  /** Begins to take jobs. Does nothing if it was started or stopped before. Throws a NoWaitingRedisError. */
  start({ concurrency, attemptTimeoutMs, attempt, onSettled }: DeliveryOptions): void {
    const { waiting, processId, keys, log, isStopping } = this.#parts;
    if (waiting === undefined) {
      throw new NoWaitingRedisError();
    }
    if (this.#worker !== undefined || this.#isStopped) {
      return;
    }
    const { redis, scripts } = waiting;
    const starter = new AttemptStarter(scripts.run, keys);
    const loader = new PayloadLoader(redis);
    const bookingRetry = new BookingRetry({ log, isStopping });
    const completer = new JobCompleter({ ...this.#parts, scripts, bookingRetry, onSettled });
    this.#worker = new QueueWorker({
      id: processId,
      redis,
      queuePrefix: keys.queuePrefix,
      concurrency,
      attemptTimeoutMs,
      run: (fetched) => this.#run(fetched, { loader, starter, completer, attempt }),
      complete: async (job, finalAttempt, script) => {
        try {
          return await completer.complete(job, finalAttempt, script);
        } catch (error) {
          if (finalAttempt !== undefined) {
            this.#logFailure(finalAttempt.settlement.id, error);
          }
          throw error;
        }
      },
      onError: (err) => this.#reportQueueError(err),
    });
    this.#fairTurns.start();
    this.#worker.start();
  }

  /** Holds at most as many jobs at the same time from now on. */
  setConcurrency(concurrency: number): void {
    this.#worker?.setConcurrency(concurrency);
  }

  /** True while it fetches jobs. */
  get isConsuming(): boolean {
    return this.#worker?.isConsuming ?? false;
  }

  /** True from the start until all running attempts have ended after a stop. */
  get holdsJobs(): boolean {
    return this.#worker !== undefined && !this.#hasEnded;
  }

  /**
   * Takes no more jobs and waits for the running attempts. It has no time limit: the caller needs one. While Redis is
   * away it doesn't wait: no outcome can be booked, and the running jobs will be delivered again.
   */
  async stop(): Promise<void> {
    this.#isStopped = true;
    const stopped = Promise.all([this.#stopWorker(), this.#fairTurns.stop()]);
    if (this.#parts.waiting?.redis.status === "ready") {
      await stopped;
    } else {
      stopped.catch((err: unknown) => this.#reportQueueError(err));
    }
  }

  async #stopWorker(): Promise<void> {
    await this.#worker?.stop();
    this.#hasEnded = true;
  }

  async #run(fetched: FetchedJob, { loader, starter, completer, attempt }: RunParts): Promise<JobEnd> {
    const { textHash, payloadKey, prefetched } = fetched;
    const delivery = readFetched(fetched.data, payloadKey, loader);
    if (delivery === undefined) {
      this.#parts.log.error({ event: "job_unreadable", job_id: fetched.id });
      return { kind: "delayed", delayMs: UNREADABLE_DELAY_MS };
    }
    const { job, payload } = delivery;
    try {
      const toBegin: JobToBegin = { job, textHash, payloadKey, prefetched };
      const start = decideAttempt(await starter.begin(toBegin));
      if (start.kind !== "due") {
        return this.#skip(job, start);
      }
      const due = { job, payload, entry: start.entry, nowMs: start.nowMs };
      return await completer.end(due, await attempt(due));
    } catch (error) {
      this.#logFailure(job.adResponseId, error);
      throw error;
    }
  }

  #skip(job: JobHead, start: Exclude<AttemptStart, { kind: "due" }>): JobEnd {
    const { why, end, outcome } = endOfSkipped(start);
    this.#parts.log.info({
      event: "attempt_skipped",
      ad_response_id: job.adResponseId,
      publisher: job.publisher,
      request_id: job.requestId,
      why,
      outcome,
    });
    return end;
  }

  /** The queue's own troubles with Redis, several a second while it is away. The connection logs those at `warn`. */
  #reportQueueError(err: unknown): void {
    this.#parts.log.debug({ event: "queue_error", err });
  }

  #logFailure(adResponseId: string, err: unknown): void {
    this.#parts.log.warn({ event: "attempt_failed", ad_response_id: adResponseId, err });
  }
}

interface RunParts extends Pick<DeliveryOptions, "attempt"> {
  readonly loader: PayloadLoader;
  readonly starter: AttemptStarter;
  readonly completer: JobCompleter;
}

/** `outcome` is the log line's word for the end of the job. */
function endOfSkipped(start: Exclude<AttemptStart, { kind: "due" }>): {
  readonly why: string;
  readonly outcome: string;
  readonly end: JobEnd;
} {
  switch (start.kind) {
    case "early":
      return { why: "early", outcome: "again", end: { kind: "delayed", delayMs: start.delayMs } };
    case "dead":
      return { why: "dead", outcome: "dead", end: { kind: "failed", reason: start.reason } };
    case "ended":
      return { why: start.why, outcome: "finished", end: { kind: "completed", finalAttempt: undefined } };
    default:
      return start satisfies never;
  }
}
