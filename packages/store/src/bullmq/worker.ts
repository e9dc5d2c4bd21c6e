/**
 * Takes jobs off the queue and runs each one. `run` returns what is to be done with the job; only this file knows how
 * to express that to BullMQ. It is BullMQ's worker with four changes:
 *
 * - `complete` completes the jobs. Its script books in the same step (job-scripts.ts). `complete` gets the final
 *   attempt that `run` returned. It returns the entry of the job that it fetched, and that job then brings its entry
 *   along.
 * - If a fetch fails, the worker waits before the next one.
 * - It has the id of its process, so the locks of its jobs say which process runs them.
 * - Data that aren't JSON are handed to `run` as null. BullMQ would let such a job stall forever.
 *
 * 1. If `run` throws, the job is run again after five seconds.
 * 2. A job that stalled, because its process was killed, is run again, however often that happens.
 * 3. BullMQ calls `complete` again if the connection failed. The repeat must count once.
 * 4. If `complete` fails for good, BullMQ lets the job fail with that error, and it is run again.
 */
import { setTimeout as wait } from "node:timers/promises";
import {
  type BackendFactory,
  createRedisBackend,
  DelayedError,
  type Job,
  type JobJson,
  type RedisQueueBackend,
  raw2NextJobData,
  UnrecoverableError,
  Worker,
} from "bullmq";
import type { Redis } from "ioredis";
import type { PrefetchedEntry } from "../delivery/attempt-start.ts";
import type { FinalAttempt, JobEnd } from "../delivery/job-completer.ts";
import { QUEUE_NAME } from "../redis/keys.ts";
import {
  type CompletedJob,
  type CompleteJobScript,
  type JobToComplete,
  loadCompleteScript,
  makeCompleteJob,
} from "./job-scripts.ts";
import { LOCK_MARGIN_MS, STALLED_CHECK_MS } from "./locks.ts";
import { STALLED_COUNT_UNBOUNDED } from "./return-jobs.ts";

/** A job as it was fetched. */
export interface FetchedJob {
  readonly id: string;
  /** Parsed from JSON; null if they are no JSON. As they were stored, or without a large body (bullmq/leave-payload.lua). */
  readonly data: unknown;
  /** The job's name: the fingerprint of its text. */
  readonly textHash: string;
  readonly payloadKey: string;
  /** The job's entry, if the step that fetched the job read it. */
  readonly prefetched: PrefetchedEntry | undefined;
}

export interface QueueWorkerOptions {
  /** Of the process. The token of each lock is this, a colon and a number. */
  readonly id: string;
  /** Waits for Redis as long as it takes; BullMQ opens a second connection like it to block on. */
  readonly redis: Redis;
  readonly queuePrefix: string;
  readonly concurrency: number;
  /** Bound of one run; the lock of a job outlives it. */
  readonly attemptTimeoutMs: number;
  run(job: FetchedJob): Promise<JobEnd>;
  complete(
    job: JobToComplete,
    finalAttempt: FinalAttempt | undefined,
    script: CompleteJobScript,
  ): Promise<CompletedJob<PrefetchedEntry>>;
  /** Called with what BullMQ reports. */
  onError(error: unknown): void;
}

const RUN_AGAIN_AFTER_FAULT_MS = 5000;
/** While Redis refuses writes, the next job is asked for after this. BullMQ would ask thousands of times a second. */
const FETCH_AGAIN_MS = 500;

export class QueueWorker {
  readonly #worker: PrefetchingWorker;

  constructor(options: QueueWorkerOptions) {
    this.#worker = new PrefetchingWorker(options);
    this.#worker.on("error", options.onError);
  }

  /** Begins to take jobs. */
  start(): void {
    // It ends when the worker is closed. Its faults come as error events.
    this.#worker.run().catch(() => {});
  }

  setConcurrency(concurrency: number): void {
    this.#worker.concurrency = concurrency;
  }

  get isConsuming(): boolean {
    return this.#worker.isRunning() && !this.#worker.closing;
  }

  /** Takes no more jobs and waits for the running ones. It has no time limit (bullmq#4656). */
  async stop(): Promise<void> {
    await this.#worker.close();
  }
}

/** The result of a run whose job is to be completed, on its way through BullMQ. BullMQ makes JSON of every result. */
class CompletableRun {
  readonly finalAttempt: FinalAttempt | undefined;

  constructor(finalAttempt: FinalAttempt | undefined) {
    this.finalAttempt = finalAttempt;
  }

  toJSON(): null {
    return null;
  }
}

/** What BullMQ parses of a reply, with the entry that came in the same reply. */
interface PrefetchedJson extends JobJson {
  prefetched?: PrefetchedEntry | undefined;
}

class PrefetchingWorker extends Worker {
  override readonly id: string;

  constructor(options: QueueWorkerOptions) {
    const run = (job: Job, token: string | undefined) =>
      runJob(options, this.toKey(job.id ?? ""), job, token);
    super(QUEUE_NAME, run, workerSettings(options), completingBackend(options));
    this.id = options.id;
  }

  protected override createJob(json: PrefetchedJson, jobId: string): Job {
    return Object.assign(this.#createReadableJob(json, jobId), { prefetched: json.prefetched });
  }

  protected override moveToActive(...args: Parameters<Worker["moveToActive"]>): Promise<Job> {
    return super.moveToActive(...args).catch(async (error: unknown) => {
      if (this.closing === undefined) {
        await wait(FETCH_AGAIN_MS);
      }
      throw error;
    });
  }

  #createReadableJob(json: JobJson, jobId: string): Job {
    try {
      return super.createJob(json, jobId);
    } catch (error) {
      if (error instanceof SyntaxError) {
        return super.createJob({ ...json, data: "null" }, jobId);
      }
      throw error;
    }
  }
}

function workerSettings({ redis, queuePrefix, concurrency, attemptTimeoutMs }: QueueWorkerOptions) {
  return {
    connection: redis,
    prefix: queuePrefix,
    concurrency,
    autorun: false,
    lockDuration: attemptTimeoutMs + LOCK_MARGIN_MS,
    stalledInterval: STALLED_CHECK_MS,
    maxStalledCount: STALLED_COUNT_UNBOUNDED,
    removeOnComplete: { count: 0 },
    runRetryDelay: 1000,
    settings: { backoffStrategy: () => RUN_AGAIN_AFTER_FAULT_MS },
  };
}

async function runJob(
  { run }: QueueWorkerOptions,
  payloadKey: string,
  job: Job & { prefetched?: PrefetchedEntry },
  token: string | undefined,
): Promise<CompletableRun> {
  const { id = "", name, data, prefetched } = job;
  const end = await run({ id, data, textHash: name, payloadKey, prefetched });
  switch (end.kind) {
    case "completed":
      return new CompletableRun(end.finalAttempt);
    case "delayed":
      await job.moveToDelayed(Date.now() + end.delayMs, token);
      throw new DelayedError();
    case "failed":
      throw new UnrecoverableError(end.reason);
    default:
      return end satisfies never;
  }
}

/** BullMQ's backend, with another way to complete jobs. */
function completingBackend({ complete }: QueueWorkerOptions): BackendFactory<RedisQueueBackend> {
  const shipped = loadCompleteScript();
  return (name, options, connections) => {
    const backend = createRedisBackend(name, options, connections);
    let script: CompleteJobScript | undefined;
    backend.moveToCompleted = async (job, run, _removeOnComplete, token, fetchNext) => {
      const finishedOn = Date.now();
      script ??= makeCompleteJob(shipped, completeCommandOf(backend, job), backend.toKey(""));
      const toComplete = { id: job.id ?? "", token, fetchNext: fetchNext && backend.closing === undefined };
      const finalAttempt = run instanceof CompletableRun ? run.finalAttempt : undefined;
      const { reply, prefetched } = await complete(toComplete, finalAttempt, script);
      const result = readReply(backend, toComplete, reply);
      const [fetched] = result;
      if (typeof fetched === "object" && fetched !== null) {
        Object.assign(fetched, { prefetched });
      }
      return { result, finishedOn };
    };
    return backend;
  };
}

/** The keys and arguments that BullMQ passes to its own script. */
function completeCommandOf(
  backend: RedisQueueBackend,
  job: Parameters<RedisQueueBackend["moveToCompleted"]>[0],
): readonly unknown[] {
  const NO_RESULT = "null";
  // This job's own options don't matter: the command is used for all jobs that follow.
  return backend.moveToCompletedArgs(job, NO_RESULT, { count: 0 }, "", true);
}

/** What BullMQ makes of its script's reply: the fetched job, its id, and delays; or an error. */
function readReply(backend: RedisQueueBackend, { id }: JobToComplete, reply: unknown): unknown[] {
  if (reply instanceof Error) {
    throw reply;
  }
  if (typeof reply === "number" && reply < 0) {
    throw backend.finishedErrors({ code: reply, jobId: id, command: "moveToFinished", state: "active" });
  }
  return Array.isArray(reply) ? raw2NextJobData(reply) : [];
}
