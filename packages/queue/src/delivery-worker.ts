/**
 * Takes acknowledgments off the queue, one attempt at a time each. The handler answers with an outcome;
 * only this file knows how BullMQ wants to hear it.
 *
 * 1. A handler that throws is run again: an infrastructure fault ends no acknowledgment.
 * 2. A job that stalled (its process was killed) is run again, however often.
 * 3. A job that can't be read waits for a worker that can: it may be of a newer version.
 */
import { type DeliveryJob, parseDeliveryJob } from "@adrelay/contract";
import { DelayedError, type Job, UnrecoverableError, type Worker } from "bullmq";
import type { Redis } from "ioredis";
import type { QueueCompletion } from "./completion.ts";
import type { PayloadRef } from "./delivery-queue.ts";
import { type FinishJob, JobNotes, NotingWorker } from "./finishing-backend.ts";
import { FINGERPRINT_FIELD, QUEUE_NAME, queuePrefix } from "./queue-names.ts";

/** What the handler wants done with the job. */
export type HandlerOutcome<Booking = never> =
  /** Ended: the payload leaves Redis. What is to be booked is booked first, in the same step. */
  | { readonly kind: "finished"; readonly booking?: Booking }
  | { readonly kind: "again"; readonly delayMs: number }
  /** Kept as a dead letter. */
  | { readonly kind: "dead"; readonly reason: string };

/** Where the job's payload stands, and the text's fingerprint that it bears. */
export interface QueuedPayload {
  readonly textHash: string;
  readonly payload: PayloadRef;
}

/** `Booking`: what a handler wants booked with a job's end. `Look`: what is seen in that step of the next job. */
export interface WorkerOptions<Booking = never, Look = never> {
  /** Waits for Redis as long as it takes; BullMQ opens a second connection like it to block on. */
  readonly redis: Redis;
  readonly partition?: string;
  readonly concurrency: number;
  /** Bound of one attempt; a job's lock outlives it. */
  readonly attemptTimeoutMs: number;
  /** `look` is there if the step that fetched the job took one. */
  handle(job: DeliveryJob, queued: QueuedPayload, look: Look | undefined): Promise<HandlerOutcome<Booking>>;
  /** Called once: how jobs that the handler finished are ended. */
  finishWith(completion: QueueCompletion): FinishJob<Booking, Look>;
  /** Told of what the handler threw, and of what BullMQ reports. */
  onError(error: unknown, adResponseId: string | undefined): void;
  /** Told of a job whose data are not of a version that we know. */
  onUnreadable(jobId: string): void;
}

const STALLED_CHECK_MS = 5000;
const LOCK_MARGIN_MS = 10_000;
const RETRY_AFTER_FAULT_MS = 5000;
const RETRY_UNREADABLE_MS = 60_000;
const STALLED_COUNT_UNBOUNDED = 1_000_000_000;

export class DeliveryWorker<Booking = never, Look = never> {
  readonly #worker: Worker;

  constructor(options: WorkerOptions<Booking, Look>) {
    const notes = new JobNotes<Booking, Look>();
    const run = (job: Job, token: string | undefined) => {
      const payload = { key: this.#worker.toKey(job.id ?? ""), field: FINGERPRINT_FIELD };
      return runJob(options, notes, { job, token, payload, look: notes.takeLook(job) });
    };
    const finishWith = (completion: QueueCompletion) => options.finishWith(completion);
    this.#worker = new NotingWorker(QUEUE_NAME, run, workerSettings(options), { notes, finishWith });
    this.#worker.on("error", (error) => options.onError(error, undefined));
  }

  /** Begins to take jobs. */
  start(): void {
    // Ends when the worker is closed; its faults come as error events.
    this.#worker.run().catch(() => {});
  }

  /** True while it takes jobs. */
  get isConsuming(): boolean {
    return this.#worker.isRunning() && !this.#worker.closing;
  }

  /** Takes no more jobs and waits for running attempts. Has no bound of its own: bullmq#4656. */
  async close(): Promise<void> {
    await this.#worker.close();
  }
}

/** How BullMQ is to run the worker. */
function workerSettings({ redis, partition = "0", concurrency, attemptTimeoutMs }: WorkerSettings) {
  return {
    connection: redis,
    prefix: queuePrefix(partition),
    concurrency,
    autorun: false,
    lockDuration: attemptTimeoutMs + LOCK_MARGIN_MS,
    stalledInterval: STALLED_CHECK_MS,
    maxStalledCount: STALLED_COUNT_UNBOUNDED,
    removeOnComplete: { count: 0 },
    runRetryDelay: 1000,
    settings: { backoffStrategy: () => RETRY_AFTER_FAULT_MS },
  };
}
type WorkerSettings = Pick<WorkerOptions, "redis" | "partition" | "concurrency" | "attemptTimeoutMs">;

interface TakenJob<Look> {
  readonly job: Job;
  readonly token: string | undefined;
  readonly payload: PayloadRef;
  readonly look: Look | undefined;
}

async function runJob<Booking, Look>(
  options: WorkerOptions<Booking, Look>,
  notes: JobNotes<Booking, Look>,
  taken: TakenJob<Look>,
): Promise<void> {
  const outcome = await handleJob(options, taken);
  switch (outcome.kind) {
    case "finished":
      notes.noteBooking(taken.job, outcome.booking);
      return;
    case "again":
      await taken.job.moveToDelayed(Date.now() + outcome.delayMs, taken.token);
      throw new DelayedError();
    case "dead":
      throw new UnrecoverableError(outcome.reason);
    default:
      outcome satisfies never;
  }
}

async function handleJob<Booking, Look>(
  { handle, onError, onUnreadable }: WorkerOptions<Booking, Look>,
  { job: taken, payload, look }: TakenJob<Look>,
): Promise<HandlerOutcome<Booking>> {
  const job = parseDeliveryJob(taken.data);
  // BullMQ has no more use for them, and keeps them for long: see finishing-backend.ts.
  taken.data = undefined;
  if (job === undefined) {
    onUnreadable(taken.id ?? "");
    return { kind: "again", delayMs: RETRY_UNREADABLE_MS };
  }
  try {
    return await handle(job, { textHash: taken.name, payload }, look);
  } catch (error) {
    onError(error, job.adResponseId);
    throw error;
  }
}
