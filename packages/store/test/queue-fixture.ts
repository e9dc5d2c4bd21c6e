import { randomUUID } from "node:crypto";
import type { DeliveryJob } from "@adrelay/contract";
import { Job, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { JOB_OPTIONS, JOB_OPTIONS_TEXT } from "../src/bullmq/queue.ts";
import { type FetchedJob, QueueWorker } from "../src/bullmq/worker.ts";
import type { JobEnd } from "../src/delivery/job-completer.ts";
import { type FetchedDelivery, PayloadLoader, readFetched } from "../src/delivery/payload.ts";
import type { StoreParts } from "../src/open-store.ts";
import { jobIdOf, QUEUE_NAME } from "../src/redis/keys.ts";
import { jobOf, newId, openTestStore } from "./store-fixture.ts";

/** `job`: with its body, which a large one loads as an attempt does. */
export type Handle = (job: DeliveryJob, fetched: FetchedJob) => Promise<JobEnd>;

export const COMPLETED: JobEnd = { kind: "completed", finalAttempt: undefined };
export const NO_JOBS = { waiting: 0, active: 0, delayed: 0, failed: 0 };

/**
 * A queue in its own partition, and workers for it.
 *
 * @param onStop is given what must be stopped after the test
 */
export function openTestQueue(redis: Redis, onStop: (stop: () => Promise<void>) => void) {
  const fixture = openTestStore(redis);
  const { parts, completer } = fixture;
  const { queue, keys } = parts;
  const { queuePrefix } = keys;
  const bare = new Queue(QUEUE_NAME, { connection: redis, prefix: queuePrefix });
  onStop(() => queue.stop());
  onStop(() => bare.close());
  const errors: unknown[] = [];
  const loader = new PayloadLoader(redis);
  const work = (handle: Handle, concurrency = 5) => {
    const worker = new QueueWorker({
      id: randomUUID(),
      redis,
      queuePrefix,
      concurrency,
      attemptTimeoutMs: 1000,
      run: async (fetched) => {
        try {
          const delivery = readFetched(fetched.data, fetched.payloadKey, loader);
          return await handle(delivery === undefined ? jobOf(newId()) : await wholeJob(delivery), fetched);
        } catch (error) {
          errors.push(error);
          throw error;
        }
      },
      complete: (job, finalAttempt, script) => completer.complete(job, finalAttempt, script),
      onError: (error) => errors.push(error),
    });
    onStop(() => worker.stop());
    worker.start();
    return worker;
  };
  /** Adds a job as BullMQ itself does. `Queue.add` would store its id a second time, among the options. */
  const enqueue = async (job: DeliveryJob, textHash: string) => {
    await bare.waitUntilReady();
    const added = new Job(bare, textHash, job, { ...JOB_OPTIONS }, jobIdOf(job.adResponseId));
    await added.addJob(await bare.backend.client);
  };
  return { ...fixture, queue, bare, queuePrefix, enqueue, work, errors };
}

/** Adds a job as our scripts do, without an entry. Resolves with the name of the job that the queue then holds. */
export function queueAlone(
  { redis, library, keys, queue }: Pick<StoreParts, "redis" | "library" | "keys" | "queue">,
  job: DeliveryJob,
  textHash: string,
): Promise<unknown> {
  const script = `${library.load("bullmq/queue-job").source}
    return queueJob({key = ARGV[1], id = ARGV[2], name = ARGV[3], data = ARGV[4]}, ARGV[5], ARGV[6])`;
  const scriptKeys = [...keys.forEntry(""), ...queue.addingKeys];
  const { adResponseId } = job;
  const args = [queue.payloadKey(adResponseId), jobIdOf(adResponseId), textHash, JSON.stringify(job)];
  return redis.eval(script, scriptKeys.length, ...scriptKeys, ...args, JOB_OPTIONS_TEXT, Date.now());
}

async function wholeJob({ job, payload }: FetchedDelivery): Promise<DeliveryJob> {
  const body = await payload.load();
  return { ...job, body: body === undefined ? "gone" : body.toString() };
}

export function newJob(body = "{}"): DeliveryJob {
  return { ...jobOf(newId()), body };
}
