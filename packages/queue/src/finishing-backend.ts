/**
 * BullMQ's worker, but for the way jobs are completed: without a result, for good, and by a script of somebody else's that
 * has more to do in the same step (`QueueCompletion`). And but for its haste: see `moveToActive`.
 *
 * 1. What a handler wants booked waits here, by its job, until BullMQ completes that job; so does what was seen with a
 *    fetched job until it runs. Both go with the job if it never comes to that.
 * 2. BullMQ completes a job again as long as its connection fails: the same is booked again then, and is to count once.
 * 3. A call that fails for good leaves the job: BullMQ fails it with that error, and it runs again.
 * 4. BullMQ completes nothing once its backend is closed. A worker closes that last, after the jobs that run.
 * 5. What a job was made of, and what was booked, is let go at once. BullMQ's jobs outlive their end by far in V8's heap, and
 *    carrying their texts along was most of what its pauses were (docs/adr/0024).
 */
import { setTimeout as wait } from "node:timers/promises";
import {
  type BackendFactory,
  createRedisBackend,
  type Job,
  type JobJson,
  type RedisQueueBackend,
  raw2NextJobData,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { loadFinishScript, makeCompletion, type QueueCompletion } from "./completion.ts";

/** A job that has run, and the lock that it ran under. */
export interface JobToFinish {
  readonly id: string;
  readonly token: string;
  readonly fetchNext: boolean;
}

export interface FinishedJob<Look> {
  /** What `finishJob` answered, or what it raised. */
  readonly finished: unknown;
  /** What was seen together with the job that was fetched: the handler has it when that job runs. */
  readonly look: Look | undefined;
}

/** Books something, if there is something to book, then finishes the job. Rejects if the former failed: the job goes on. */
export type FinishJob<Booking, Look> = (
  job: JobToFinish,
  booking: Booking | undefined,
) => Promise<FinishedJob<Look>>;

/** Keeps what belongs to a job while BullMQ has it. */
export class JobNotes<Booking, Look> {
  readonly #bookings = new WeakMap<object, Booking>();
  readonly #looks = new WeakMap<object, Look>();

  noteBooking(job: object, booking: Booking | undefined): void {
    if (booking !== undefined) {
      this.#bookings.set(job, booking);
    }
  }

  bookingOf(job: object): Booking | undefined {
    return this.#bookings.get(job);
  }

  dropBooking(job: object): void {
    this.#bookings.delete(job);
  }

  noteLook(fetched: object, look: Look | undefined): void {
    if (look !== undefined) {
      this.#looks.set(fetched, look);
    }
  }

  /** Once: a second run of a job has to ask anew. */
  takeLook(fetched: object): Look | undefined {
    const look = this.#looks.get(fetched);
    this.#looks.delete(fetched);
    return look;
  }
}

/** `finishWith` is called once, at the first job that is completed: before, BullMQ tells nobody how. */
export interface Finishing<Booking, Look> {
  readonly notes: JobNotes<Booking, Look>;
  readonly finishWith: (completion: QueueCompletion) => FinishJob<Booking, Look>;
}

/** While Redis refuses writes, a job is asked for again after this. */
const FETCH_AGAIN_MS = 500;

/** A worker's jobs have the notes that their data, as they were fetched, had. */
export class NotingWorker<Booking, Look> extends Worker {
  readonly #notes: JobNotes<Booking, Look>;

  constructor(
    name: string,
    process: (job: Job, token?: string) => Promise<void>,
    options: WorkerOptions,
    finishing: Finishing<Booking, Look>,
  ) {
    super(name, process, options, finishingBackend(finishing));
    this.#notes = finishing.notes;
  }

  protected override createJob(data: JobJson, jobId: string): Job {
    const job = this.#createReadableJob(data, jobId);
    this.#notes.noteLook(job, this.#notes.takeLook(data));
    data.data = "";
    return job;
  }

  /** A fetch that fails is made again at once by BullMQ: thousands a second, of a Redis that takes no writes. */
  protected override moveToActive(...asked: Parameters<Worker["moveToActive"]>): Promise<Job> {
    return super.moveToActive(...asked).catch(async (error: unknown) => {
      if (this.closing === undefined) {
        await wait(FETCH_AGAIN_MS);
      }
      throw error;
    });
  }

  /** Data that aren't JSON are unreadable like those of another version: BullMQ would leave their job to stall for ever. */
  #createReadableJob(data: JobJson, jobId: string): Job {
    try {
      return super.createJob(data, jobId);
    } catch (error) {
      if (error instanceof SyntaxError) {
        return super.createJob({ ...data, data: "null" }, jobId);
      }
      throw error;
    }
  }
}

type Completing = Parameters<RedisQueueBackend["moveToCompleted"]>;

function finishingBackend<Booking, Look>({
  notes,
  finishWith,
}: Finishing<Booking, Look>): BackendFactory<RedisQueueBackend> {
  const script = loadFinishScript();
  return (name, options, connections) => {
    const backend = createRedisBackend(name, options, connections);
    let finish: FinishJob<Booking, Look> | undefined;
    backend.moveToCompleted = async (...completing: Completing) => {
      const [job, , , token, fetchNext] = completing;
      const finishedOn = Date.now();
      finish ??= finishWith(makeCompletion(script, commandOf(backend, job), backend.toKey("")));
      const toFinish = { id: job.id ?? "", token, fetchNext: fetchNext && backend.closing === undefined };
      const { finished, look } = await finish(toFinish, notes.bookingOf(job));
      notes.dropBooking(job);
      const result = readFinished(backend, toFinish, finished);
      const [fetched] = result;
      if (typeof fetched === "object" && fetched !== null) {
        notes.noteLook(fetched, look);
      }
      return { result, finishedOn };
    };
    return backend;
  };
}

/** What BullMQ tells its script of a job: see completion.ts. */
function commandOf(backend: RedisQueueBackend, job: Completing[0]): readonly unknown[] {
  const NO_RESULT = "null";
  // Whatever this job's own options say: it speaks for all that come after it.
  return backend.moveToCompletedArgs(job, NO_RESULT, { count: 0 }, "", true);
}

function readFinished(backend: RedisQueueBackend, { id }: JobToFinish, finished: unknown): unknown[] {
  if (finished instanceof Error) {
    throw finished;
  }
  if (typeof finished === "number" && finished < 0) {
    throw backend.finishedErrors({ code: finished, jobId: id, command: "moveToFinished", state: "active" });
  }
  if (!Array.isArray(finished)) {
    return [];
  }
  const result = raw2NextJobData(finished);
  const [row] = finished;
  if (Array.isArray(row)) {
    row.length = 0;
  }
  return result;
}
